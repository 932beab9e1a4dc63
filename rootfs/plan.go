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

// Validate says everything that is wrong with a plan, without looking at the host.
func Validate(p Plan) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Base != BaseHost {
		bad("base %q: the only one is %s", p.Base, BaseHost)
	}
	if !path.IsAbs(p.Target) || !path.IsAbs(p.Dev) {
		bad("target %q, dev %q: must be absolute", p.Target, p.Dev)
	}
	if p.IDs.UIDBase <= 0 || p.IDs.GIDBase <= 0 || p.IDs.Size <= 0 {
		bad("ids %+v: must be above 0", p.IDs)
	}
	for _, m := range p.Mounts {
		if m.Kind != KindBind && m.Kind != KindTmpfs {
			bad("mount on %s: unknown kind %q", m.Destination, m.Kind)
		}
		if m.Kind == KindTmpfs && (m.Size <= 0 || m.Inodes <= 0) {
			bad("tmpfs %s: needs a size and inodes above 0", m.Destination)
		}
		if err := checkDestination(m.Destination); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkDestination refuses the places where a mount would undo what protects the sandbox.
func checkDestination(dst string) error {
	clean := path.Clean(dst)
	switch {
	case !path.IsAbs(dst) || strings.ContainsRune(dst, 0):
		return fmt.Errorf("mount on %q: must be an absolute path", dst)
	case clean == "/":
		return errors.New("mount on /: the root cannot be replaced")
	case clean == devShm:
		return nil
	}
	for _, reserved := range []string{"/proc", "/sys", "/dev"} {
		if clean == reserved || strings.HasPrefix(clean, reserved+"/") {
			return fmt.Errorf("mount on %s: %s is the sandbox's own", dst, reserved)
		}
	}
	return nil
}

// devShm is the one place below /dev that may be mounted on; it lies in the /dev tree.
const devShm = "/dev/shm"
