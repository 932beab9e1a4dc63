package cgroup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what a group used since it was made. What this host cannot measure is nil.
type Usage struct {
	CPUUser       *time.Duration
	CPUSystem     *time.Duration
	MemoryPeak    *int64 // bytes, page cache and tmpfs included
	PIDsPeak      *int64 // processes and threads at once
	OOMKills      *int64 // processes killed because memory was out
	PIDsLimitHits *int64 // forks refused. From Linux 6.11 on v2 counts only those that this group's limit refused
}

// values holds the numbers that a Usage points to, so that they are allocated together.
type values struct {
	known            [numValues]bool
	user, system     time.Duration
	peak, pids, ooms int64
	refused          int64
}

const (
	hasCPU = iota
	hasPeak
	hasPIDs
	hasOOMs
	hasRefused
	numValues
)

func (v *values) usage() Usage {
	kept := *v
	var u Usage
	if kept.known[hasCPU] {
		u.CPUUser, u.CPUSystem = &kept.user, &kept.system
	}
	if kept.known[hasPeak] {
		u.MemoryPeak = &kept.peak
	}
	if kept.known[hasPIDs] {
		u.PIDsPeak = &kept.pids
	}
	if kept.known[hasOOMs] {
		u.OOMKills = &kept.ooms
	}
	if kept.known[hasRefused] {
		u.PIDsLimitHits = &kept.refused
	}
	return u
}

// statSize holds any of the files below; the longest, cpu.stat, has a dozen short lines.
const statSize = 512

func (v *values) readCPUFile(f *os.File) error {
	if f == nil {
		return os.ErrClosed
	}
	var buf [statSize]byte
	text, err := pread(int(f.Fd()), "cpu.stat", buf[:])
	if err == nil {
		v.parseCPU(text)
	}
	return err
}

func (v *values) readCPU(dir *os.File, path string) error {
	var buf [statSize]byte
	text, err := read(dir, path, buf[:])
	if err == nil {
		v.parseCPU(text)
	}
	return err
}

func (v *values) parseCPU(text []byte) {
	user, ok1 := field(text, "user_usec")
	system, ok2 := field(text, "system_usec")
	v.user, v.system = time.Duration(user)*time.Microsecond, time.Duration(system)*time.Microsecond
	v.known[hasCPU] = ok1 && ok2
}

// counter is a file, the key of its line or "" for a bare number, and where the number goes.
type counter struct {
	in   controller
	file string
	key  string
	to   *int64
	has  int
}

// readGroup reads all but CPU times. prefix is the leaf's name with a slash, or empty for x.
func (v *values) readGroup(mode Mode, x *dirs, prefix string) error {
	peak := counter{memory, "memory.peak", "", &v.peak, hasPeak}
	ooms := counter{memory, "memory.events", "oom_kill", &v.ooms, hasOOMs}
	if mode == Hybrid {
		peak.file, ooms.file = "memory.max_usage_in_bytes", "memory.oom_control"
	}
	for _, c := range [...]counter{
		peak, ooms,
		{pids, "pids.peak", "", &v.pids, hasPIDs},
		{pids, "pids.events", "max", &v.refused, hasRefused},
	} {
		var buf [statSize]byte
		text, err := read(x.of[c.in], prefix+c.file, buf[:])
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
			continue // not measured by this kernel
		}
		if err != nil {
			return err
		}
		*c.to, v.known[c.has] = field(text, c.key)
	}
	return nil
}

// field finds the number on the line that begins with key, or the first number for an empty key.
func field(text []byte, key string) (int64, bool) {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, newline[:])
		text = rest
		if key == "" {
			return number(line)
		}
		if len(line) > len(key) && string(line[:len(key)]) == key && line[len(key)] == ' ' {
			return number(line[len(key)+1:])
		}
	}
	return 0, false
}

var newline = [1]byte{'\n'}

// number reads digits only.
func number(text []byte) (int64, bool) {
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' || n > (1<<63-10)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(text) > 0
}
