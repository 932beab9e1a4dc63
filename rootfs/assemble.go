package rootfs

import (
	"fmt"
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// The root itself holds directories, links and a few small files.
const rootOptions = "mode=0755,size=16m,nr_inodes=4096"

// Assemble mounts the root on p.Target and the /dev tree on p.Dev, in the calling thread's mount namespace,
// which must be one of its own, with nothing in it shared. It needs the host's root, and /proc.
//
// Errors name the step and the path and wrap the errno; a bind's missing source is fs.ErrNotExist. What was
// mounted before an error stays, for the namespace to take along.
func Assemble(p Plan) (Result, error) {
	if err := Validate(p); err != nil {
		return Result{}, err
	}
	b := builder{p: p}
	return b.assemble()
}

// builder is a root while it is being made.
type builder struct {
	p       Plan
	host    string // where the host's root is; "" but in tests
	root    tree
	dev     tree
	sources []source // of p.Mounts, one each
	spaces  spaces
	made    map[string]bool // directories below /etc
}

func (b *builder) assemble() (Result, error) {
	// Umask and file system ids are the thread's. The umask is so since it has a mount namespace of its own
	// (unshare(2)); this makes sure, and does nothing then.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return Result{}, fmt.Errorf("unshare umask: %w", err)
	}
	defer unix.Umask(unix.Umask(0))
	defer b.close()
	for _, step := range []func() error{b.openSources, b.mountRoot, b.base, b.makeDev, b.mounts} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	points, err := b.mountPoints()
	if err != nil {
		return Result{}, err
	}
	if err := b.seal(); err != nil {
		return Result{}, err
	}
	return Result{points}, nil
}

func (b *builder) close() {
	for _, s := range b.sources {
		s.file.Close() // nil is refused, not a crash
	}
	b.spaces.close()
	b.root.Close()
	b.dev.Close()
}

func (b *builder) mountRoot() error {
	var err error
	b.root, err = b.mountTree(tree{top: b.p.Target}, unix.MS_NOSUID|unix.MS_NODEV, rootOptions)
	if err != nil {
		return fmt.Errorf("mount root on %s: %w", b.p.Target, err)
	}
	return nil
}

// mountTree mounts a tmpfs that belongs to the sandbox's root, and opens it.
func (b *builder) mountTree(t tree, flags uintptr, options string) (tree, error) {
	options += fmt.Sprintf(",uid=%d,gid=%d", b.p.IDs.UIDBase, b.p.IDs.GIDBase)
	if err := unix.Mount("tmpfs", t.top, "tmpfs", flags, options); err != nil {
		return tree{}, err
	}
	return openTop(t.top, t.at)
}

// openPath opens a path of ours or of the caller's, only to name what is there.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// as does something with the file system ids of one of the sandbox's users. Files made are that user's then,
// and what only root could write on the host stays as it was: the kernel takes root's capabilities over
// files away meanwhile (capabilities(7)).
func (b *builder) as(uid, gid int, do func() error) error {
	defer func() {
		_ = unix.Setfsuid(os.Geteuid())
		_ = unix.Setfsgid(os.Getegid())
	}()
	_ = unix.Setfsgid(b.p.IDs.GIDBase + gid) // says nothing when refused
	_ = unix.Setfsuid(b.p.IDs.UIDBase + uid)
	if now, _ := unix.SetfsuidRetUid(-1); now != b.p.IDs.UIDBase+uid {
		return fmt.Errorf("act as the sandbox's user: %w", unix.EPERM)
	}
	return do()
}

// base is all that does not depend on the caller's mounts. It is made as the sandbox's root, whose it is
// then, and who reads of the host what everybody may.
func (b *builder) base() error {
	return b.as(0, 0, func() error {
		for _, step := range []func() error{b.directories, b.usr, b.etc} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *builder) directories() error {
	for _, name := range []string{
		"dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "var/tmp", "workspace",
	} {
		if err := b.mkdir(name); err != nil {
			return err
		}
	}
	if err := b.symlink("/run", "var/run"); err != nil {
		return err
	}
	return b.symlink("/run/lock", "var/lock")
}

func (b *builder) mkdir(name string) error {
	if err := unix.Mkdirat(int(b.root.Fd()), name, 0o755); err != nil {
		return fmt.Errorf("make /%s: %w", name, err)
	}
	return nil
}

func (b *builder) symlink(target, name string) error {
	if err := unix.Symlinkat(target, int(b.root.Fd()), name); err != nil {
		return fmt.Errorf("make /%s: %w", name, err)
	}
	return nil
}

// seal makes the root and the /dev tree, but not what is mounted in them, read-only.
func (b *builder) seal() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	for _, tree := range []tree{b.root, b.dev} {
		if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("make root read-only: %w", err)
		}
	}
	return nil
}
