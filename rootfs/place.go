package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// place is an open mount point.
type place struct {
	*os.File
	path string // as seen inside, symlinks resolved
}

// mountPoints makes them and says where they really are.
func (b *builder) mountPoints() ([]string, error) {
	points := make([]string, 0, len(b.p.MountPoints))
	for _, dst := range b.p.MountPoints {
		at, err := b.place(dst, true)
		if err != nil {
			return nil, err
		}
		at.Close()
		points = append(points, at.path)
	}
	return points, nil
}

// tree is the root or the /dev tree.
type tree struct {
	*os.File
	top string // its path on the host, symlinks resolved
	at  string // its path inside: "" or "/dev"
}

// openTop opens what was just mounted.
func openTop(on, at string) (tree, error) {
	file, err := openPath(on)
	if err != nil {
		return tree{}, err
	}
	top, err := os.Readlink(fdPath(file))
	if err != nil {
		file.Close()
		return tree{}, cause(err)
	}
	return tree{file, top, at}, nil
}

// place opens a mount point; it makes what is missing, a directory or an empty file. Links are followed
// inside the tree only, and not to what is the sandbox's own.
func (b *builder) place(dst string, dir bool) (place, error) {
	in, name := b.root, path.Clean(dst)
	if name == "/dev" || strings.HasPrefix(name, "/dev/") {
		in = b.dev
	}
	file, err := b.open(in, "/"+strings.TrimPrefix(name[len(in.at):], "/"), dir)
	if err != nil {
		return place{}, fmt.Errorf("make mount point %s: %w", dst, err)
	}
	real, err := in.find(file)
	if err == nil && real != name {
		err = checkLink(real)
	}
	if err != nil {
		file.Close()
		return place{}, fmt.Errorf("resolve mount point %s: %w", dst, err)
	}
	return place{file, real}, nil
}

// checkLink refuses what a link in an earlier bind may not lead to, though it may be named outright.
func checkLink(real string) error {
	if at := reserved(real); at != "" {
		return fmt.Errorf("it leads to %s: %s is the sandbox's own", real, at)
	}
	return nil
}

// open opens what is there, or makes it, and its parents.
func (b *builder) open(in tree, name string, dir bool) (*os.File, error) {
	at, err := openInside(in.File, name, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
	if !errors.Is(err, os.ErrNotExist) {
		return at, err
	}
	parent, err := b.open(in, path.Dir(name), true)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return b.make(parent, path.Base(name), dir)
}

// openInside opens a path that may hold anything, only to name what is there.
func openInside(dir *os.File, unsafePath string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(dir.Fd()), unsafePath, &how)
		if err == nil {
			return os.NewFile(uintptr(fd), unsafePath), nil
		}
		// something was renamed meanwhile, anywhere on the host (openat2(2))
		if !errors.Is(err, unix.EAGAIN) || try == 100 {
			return nil, err
		}
	}
}

// make makes a mount point. It belongs to the sandbox's root where that may write, else to the user: on a
// bind, whose owner it is.
func (b *builder) make(parent *os.File, name string, dir bool) (*os.File, error) {
	mknod := func() error {
		if dir {
			return unix.Mkdirat(int(parent.Fd()), name, 0o755)
		}
		return unix.Mknodat(int(parent.Fd()), name, unix.S_IFREG|0o644, 0)
	}
	err := b.as(0, 0, mknod)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOVERFLOW) {
		err = b.as(b.p.User.UID, b.p.User.GID, mknod)
	}
	switch {
	case errors.Is(err, unix.EEXIST): // or somebody else was faster; then a second try finds it
		return nil, fmt.Errorf("%s is a link to nothing: %w", name, err)
	case errors.Is(err, unix.EROFS):
		return nil, fmt.Errorf("%s is missing where nothing can be made: make it on the host first: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return openInside(parent, name, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// find is the path inside of a file that was opened in the tree.
func (t tree) find(file *os.File) (string, error) {
	real, err := os.Readlink(fdPath(file))
	if err != nil {
		return "", cause(err)
	}
	name, ok := strings.CutPrefix(real+"/", t.top+"/")
	if !ok {
		return "", fmt.Errorf("it has moved away, to %s", real)
	}
	return path.Clean("/" + t.at + "/" + name), nil
}

// fdPath is a name for an open file that the kernel resolves without walking a path. thread-self, since
// the main thread is in another mount namespace.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/thread-self/fd/%d", f.Fd()) }

// cause is the errno of an error that repeats a path.
func cause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func (b *builder) mounts() error {
	for i, m := range b.p.Mounts {
		var err error
		if m.Kind == KindTmpfs {
			err = b.tmpfs(m)
		} else {
			err = b.bind(m, b.sources[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) tmpfs(m Mount) error {
	at, err := b.place(m.Destination, true)
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
	if err := unix.Mount("tmpfs", fdPath(at.File), "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", m.Destination, err)
	}
	return nil
}
