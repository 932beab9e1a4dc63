package rootfs

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Base names what a root is made of.
type Base string

// BaseHost is the host's /usr and a made-up /etc.
const BaseHost Base = "host"

// Plan is one root; plain data, since it may travel to another process.
type Plan struct {
	Target string // existing, empty host directory; the root is mounted on it
	Dev    string // another one; the /dev tree is mounted on it, for the caller to bind to /dev
	Base   Base
	// Hostname is put into /etc/hostname and /etc/hosts.
	Hostname string
	// HostNetwork copies the host's resolver configuration; else there is none.
	HostNetwork bool
	IDs         IDs
	User        User
	// Mounts are made in this order.
	Mounts []Mount
	// MountPoints are further directories that must exist, for mounts that others make later.
	MountPoints []string
}

// IDs are the host ids that the sandbox's 0 … Size-1 are mapped to.
type IDs struct{ UIDBase, GIDBase, Size int }

// User runs the programs: ids as seen inside.
type User struct {
	UID, GID int
	Name     string
	Home     string
}

// Kinds of a Mount.
const (
	KindBind  = "bind"
	KindTmpfs = "tmpfs"
)

// Mount is one bind or tmpfs.
type Mount struct {
	Kind        string
	Source      string // of a bind: a path on the host; must exist
	Destination string // absolute, resolved inside the root; made if missing
	ReadOnly    bool
	AsHostRoot  bool   // a writable bind of what host root owns makes files of host root's
	Size        int64  // of a tmpfs, bytes
	Inodes      int64  // of a tmpfs
	Mode        uint32 // of a tmpfs
	UID, GID    int    // of a tmpfs, as seen inside
	NoExec      bool
}

// Result says what became of the plan.
type Result struct {
	MountPoints []string // Plan.MountPoints, symlinks resolved
}

// problems collects what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// Validate says everything that is wrong with a plan, without looking at the host. Assemble calls it.
func Validate(p Plan) error {
	var bad problems
	if p.Base != BaseHost {
		bad.add("base %q: the only one is %s", p.Base, BaseHost)
	}
	if !isAbs(p.Target) || !isAbs(p.Dev) || path.Clean(p.Target) == path.Clean(p.Dev) {
		bad.add("target %q, dev %q: must be two absolute paths", p.Target, p.Dev)
	}
	if strings.ContainsAny(p.Hostname, " \t\n\x00") {
		bad.add("hostname %q: has white space", p.Hostname)
	}
	if strings.ContainsAny(p.User.Home, ":\n\x00") {
		bad.add("home %q: has a colon or line end", p.User.Home)
	}
	p.IDs.validate(&bad)
	if !p.IDs.has(p.User.UID, p.User.GID) {
		bad.add("user %d:%d: must be below %d", p.User.UID, p.User.GID, p.IDs.Size)
	}
	for _, m := range p.Mounts {
		m.validate(p.IDs, &bad)
	}
	for _, dst := range p.MountPoints {
		if !isAbs(dst) || path.Clean(dst) == "/" {
			bad.add("mount point %q: must be an absolute path below /", dst)
		}
	}
	return errors.Join(bad...)
}

// maxID is the last id; the one above means none.
const maxID = 1<<32 - 2

func (i IDs) validate(bad *problems) {
	// one above the range is used, too: see mapping
	if i.UIDBase <= 0 || i.GIDBase <= 0 || i.Size <= 0 || max(i.UIDBase, i.GIDBase) > maxID-i.Size {
		bad.add("ids %+v: must be above 0 and end below %d", i, maxID)
	}
}

// has: whether the sandbox has such a user and group; others would be somebody else's.
func (i IDs) has(uid, gid int) bool { return uid >= 0 && uid < i.Size && gid >= 0 && gid < i.Size }

func (m Mount) validate(ids IDs, bad *problems) {
	switch m.Kind {
	case KindBind:
		if !isAbs(m.Source) {
			bad.add("bind %q: must be an absolute path", m.Source)
		}
	case KindTmpfs:
		if m.Size <= 0 || m.Inodes <= 0 {
			bad.add("tmpfs %s: needs a size and inodes above 0", m.Destination)
		}
		if m.Mode > 0o7777 || !ids.has(m.UID, m.GID) {
			bad.add("tmpfs %s: mode %o, owner %d:%d: must be below 10000 and %d", m.Destination, m.Mode, m.UID, m.GID, ids.Size)
		}
	default:
		bad.add("mount on %s: unknown kind %q", m.Destination, m.Kind)
	}
	if err := checkDestination(m.Destination); err != nil {
		*bad = append(*bad, err)
	}
}

func isAbs(name string) bool { return path.IsAbs(name) && !strings.ContainsRune(name, 0) }

// checkDestination refuses the places where a mount would undo what protects the sandbox.
func checkDestination(dst string) error {
	clean := path.Clean(dst)
	if !isAbs(dst) {
		return fmt.Errorf("mount on %q: must be an absolute path", dst)
	}
	if at := reserved(clean); at != "" && clean != devShm {
		return fmt.Errorf("mount on %s: %s is the sandbox's own", dst, at)
	}
	return nil
}

// reserved is the part of a sandbox's own that a clean path is or lies in: "" is none.
func reserved(clean string) string {
	if clean == "/" {
		return clean
	}
	for _, at := range []string{"/proc", "/sys", "/dev"} {
		if clean == at || strings.HasPrefix(clean, at+"/") {
			return at
		}
	}
	return ""
}

// devShm is the one place below /dev that may be mounted on; it lies in the /dev tree.
const devShm = "/dev/shm"
