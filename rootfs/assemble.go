package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

// The root itself holds directories, links and a few small files.
const rootOptions = "mode=0755,size=16m,nr_inodes=4096"

// Assemble mounts the root on p.Target and the /dev tree on p.Dev, in the calling thread's mount namespace.
func Assemble(p Plan) (Result, error) {
	if err := Validate(p); err != nil {
		return Result{}, err
	}
	if err := unix.Mount("tmpfs", p.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootOptions); err != nil {
		return Result{}, fmt.Errorf("mount root: %w", err)
	}
	root, err := os.OpenFile(p.Target, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Result{}, fmt.Errorf("open root: %w", err)
	}
	defer root.Close()
	b := builder{p: p, root: root}
	for _, step := range []func() error{b.directories, b.usr, b.etc, b.dev, b.mounts} {
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

// builder is a root while it is being made.
type builder struct {
	p    Plan
	root *os.File
}

// at is a path below the new root for what we made ourselves a moment ago, where no link is.
func (b *builder) at(name string) string { return b.p.Target + "/" + name }

// own gives a file that we made to the sandbox's root.
func (b *builder) own(path string) error {
	if err := os.Lchown(path, b.p.IDs.UIDBase, b.p.IDs.GIDBase); err != nil {
		return fmt.Errorf("hand over root: %w", err)
	}
	return nil
}

func (b *builder) directories() error {
	if err := b.own(b.p.Target); err != nil {
		return err
	}
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
	err := os.Mkdir(b.at(name), 0o755)
	if err == nil {
		err = os.Chmod(b.at(name), 0o755) // whatever our umask
	}
	if err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	return b.own(b.at(name))
}

func (b *builder) symlink(target, name string) error {
	if err := os.Symlink(target, b.at(name)); err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	return b.own(b.at(name))
}

func (b *builder) mounts() error {
	for _, m := range b.p.Mounts {
		var err error
		if m.Kind == KindTmpfs {
			err = b.tmpfs(m)
		} else {
			err = b.bind(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place opens the mount point of a destination, in the root or in the /dev tree; it makes what is
// missing.
func (b *builder) place(dst string) (*os.File, error) {
	if path.Clean(dst) == devShm {
		return os.OpenFile(b.p.Dev+"/shm", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return b.makeInside(dst)
}

// makeInside opens a directory inside the root, making it and its parents if they are missing. Links are
// followed inside the root only.
func (b *builder) makeInside(dst string) (*os.File, error) {
	dir, err := pathrs.OpenatInRoot(b.root, dst)
	if errors.Is(err, os.ErrNotExist) {
		dir, err = pathrs.MkdirAllHandle(b.root, dst, 0o755)
		if err == nil {
			err = unix.Fchownat(int(dir.Fd()), "", b.p.IDs.UIDBase, b.p.IDs.GIDBase, unix.AT_EMPTY_PATH)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make mount point %s: %w", dst, err)
	}
	return dir, nil
}

func (b *builder) tmpfs(m Mount) error {
	at, err := b.place(m.Destination)
	if err != nil {
		return err
	}
	defer at.Close()
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if m.NoExec {
		flags |= unix.MS_NOEXEC
	}
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o,uid=%d,gid=%d", m.Size, m.Inodes, m.Mode,
		b.p.IDs.UIDBase+m.UID, b.p.IDs.GIDBase+m.GID)
	if err := unix.Mount("tmpfs", fdPath(at), "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", m.Destination, err)
	}
	return nil
}

// fdPath is a name for an open file that the kernel resolves without walking a path. thread-self, since
// the main thread is in another mount namespace.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/thread-self/fd/%d", f.Fd()) }

// mountPoints makes them and says where they really are.
func (b *builder) mountPoints() ([]string, error) {
	var points []string
	for _, dst := range b.p.MountPoints {
		if strings.HasPrefix(path.Clean(dst)+"/", "/dev/") {
			points = append(points, path.Clean(dst)) // in the /dev tree, which is ours
			continue
		}
		dir, err := b.makeInside(dst)
		if err != nil {
			return nil, err
		}
		real, err := os.Readlink(fdPath(dir))
		dir.Close()
		if err != nil {
			return nil, fmt.Errorf("resolve mount point %s: %w", dst, err)
		}
		inside := strings.TrimPrefix(real, b.p.Target)
		if inside == real || inside == "" {
			return nil, fmt.Errorf("resolve mount point %s: it is at %s, outside the root or the root itself", dst, real)
		}
		points = append(points, inside)
	}
	return points, nil
}

// seal makes the root, but not what is mounted in it, read-only.
func (b *builder) seal() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(int(b.root.Fd()), "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	return nil
}
