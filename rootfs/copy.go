package rootfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxCopy bounds a copied file, in bytes; the root's tmpfs is small.
const maxCopy = 1 << 20

// copyFile copies a link as a link, and a file that all may read; others, and missing ones, are left out.
// It is to be called as the sandbox's root.
func (b *builder) copyFile(name string) error {
	from := b.host + "/" + name
	fd, err := unix.Open(from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return b.copyLink(name)
	case err != nil:
		return nil //nolint:nilerr // the host has none, or not for all
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("copy host's /%s: %w", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&unix.S_IROTH == 0 || st.Size > maxCopy {
		return nil
	}
	text := make([]byte, st.Size)
	n, err := unix.Pread(fd, text, 0) // a regular file gives all it has at once
	if err != nil {
		return fmt.Errorf("copy host's /%s: %w", name, err)
	}
	if err := b.parent(name); err != nil {
		return err
	}
	return b.write(name, text[:n])
}

func (b *builder) copyLink(name string) error {
	target, err := os.Readlink(b.host + "/" + name)
	if err != nil {
		return fmt.Errorf("copy host's /%s: %w", name, err)
	}
	if err := b.parent(name); err != nil {
		return err
	}
	return b.symlink(target, name)
}

// write makes a small file, readable by all.
func (b *builder) write(name string, text []byte) error {
	fd, err := unix.Openat(int(b.root.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("make /%s: %w", name, err)
	}
	n, err := unix.Write(fd, text)
	if err == nil && n < len(text) {
		err = unix.ENOSPC
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return fmt.Errorf("write /%s: %w", name, err)
	}
	return nil
}
