package rootfs

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// device is one that every program may use (those of the OCI runtime specification, config-linux.md).
type device struct {
	name         string
	major, minor uint32
}

// makeDev mounts the /dev tree, on a tmpfs of its own so that its mountinfo line shows no path of the host.
func (b *builder) makeDev() error {
	var err error
	b.dev, err = b.mountTree(tree{top: b.p.Dev, at: "/dev"}, unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64")
	if err != nil {
		return fmt.Errorf("mount /dev on %s: %w", b.p.Dev, err)
	}
	for _, d := range []device{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}} {
		if err := b.node(d); err != nil {
			return fmt.Errorf("make /dev/%s: %w", d.name, err)
		}
	}
	return b.as(0, 0, b.devRest)
}

// node is made by the host's root, since the sandbox's may not, and given to it.
func (b *builder) node(d device) error {
	at := int(b.dev.Fd())
	if err := unix.Mknodat(at, d.name, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
		return err
	}
	return unix.Fchownat(at, d.name, b.p.IDs.UIDBase, b.p.IDs.GIDBase, unix.AT_SYMLINK_NOFOLLOW)
}

func (b *builder) devRest() error {
	at := int(b.dev.Fd())
	for _, link := range []string{
		"fd /proc/self/fd", "stdin /proc/self/fd/0", "stdout /proc/self/fd/1", "stderr /proc/self/fd/2", "ptmx pts/ptmx",
	} {
		name, target, _ := strings.Cut(link, " ")
		if err := unix.Symlinkat(target, at, name); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		if err := unix.Mkdirat(at, name, 0o755); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	return nil
}
