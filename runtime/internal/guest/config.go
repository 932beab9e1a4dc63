package guest

import (
	"fmt"
	"os"
	"unsafe"
)

// Flags of a Config.
const (
	NewNet   = 1 << iota // every execution has a network namespace of its own
	NewIPC               // … and an IPC namespace
	Loopback             // bring up lo of the sandbox's own network namespace at the start
	Owned                // end when the other end of the life descriptor is closed
)

// Mount flags of our own, besides MS_*.
const (
	OnlyTTY = 1 << iota // only in executions with a terminal
	Sized               // report at the end whether it is full
	Present             // is there already; only looked at
)

// Config is what a guest is told once, at its start.
type Config struct {
	Flags  uint32
	Mounts []Mount  // at most 32, made in every execution in this order
	Masks  []string // at most 24 paths, covered in every execution where they exist
}

// Mount is one mount(2) in every execution.
type Mount struct {
	Target, Type, Options string
	Flags                 uintptr // MS_*
	What                  uint32  // OnlyTTY, Sized, Present
}

const (
	maxMounts = 32
	maxMasks  = 24
)

type mount struct {
	target      [256]byte
	typ         [16]byte
	options     [192]byte
	flags, what uint32
}

type config struct {
	version, flags, nmounts, nmasks uint32
	mounts                          [maxMounts]mount
	masks                           [maxMasks][64]byte
}

// File is the Config in a sealed memfd, positioned at its start. The caller must Close it.
func (c Config) File() (*os.File, error) {
	raw := &config{version: Version, flags: c.Flags, nmounts: uint32(len(c.Mounts)), nmasks: uint32(len(c.Masks))}
	if len(c.Mounts) > maxMounts || len(c.Masks) > maxMasks {
		return nil, fmt.Errorf("guest configuration: %d mounts and %d masks, at most %d and %d fit",
			len(c.Mounts), len(c.Masks), maxMounts, maxMasks)
	}
	for i, m := range c.Mounts {
		to := &raw.mounts[i]
		to.flags, to.what = uint32(m.Flags), m.What
		if !put(to.target[:], m.Target) || !put(to.typ[:], m.Type) || !put(to.options[:], m.Options) {
			return nil, fmt.Errorf("guest configuration: mount on %s: path or options too long (255 and 191 bytes)", m.Target)
		}
	}
	for i, path := range c.Masks {
		if !put(raw.masks[i][1:], path) {
			return nil, fmt.Errorf("guest configuration: mask %s: longer than 62 bytes", path)
		}
	}
	f, err := sealed("husk-config", unsafe.Slice((*byte)(unsafe.Pointer(raw)), unsafe.Sizeof(*raw)), 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("rewind memfd: %w", err)
	}
	return f, nil
}

// put copies s and its final NUL; false if it does not fit.
func put(to []byte, s string) bool {
	return copy(to, s) == len(s) && len(s) < len(to)
}
