package rootfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dev mounts a tree with the six devices that every program may use, on a tmpfs of its own so that its
// mountinfo line shows no path of the host. The host's root makes the nodes; the sandbox's could not.
func (b *builder) dev() error {
	dir := b.p.Dev
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	if err := b.own(dir); err != nil {
		return err
	}
	nodes := []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}}
	for _, n := range nodes {
		path := dir + "/" + n.name
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(n.major, n.minor)))
		if err == nil {
			err = os.Chmod(path, 0o666)
		}
		if err != nil {
			return fmt.Errorf("make /dev/%s: %w", n.name, err)
		}
		if err := b.own(path); err != nil {
			return err
		}
	}
	return b.devRest()
}

func (b *builder) devRest() error {
	links := map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	}
	for name, target := range links {
		if err := os.Symlink(target, b.p.Dev+"/"+name); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		err := os.Mkdir(b.p.Dev+"/"+name, 0o755)
		if err == nil {
			err = os.Chmod(b.p.Dev+"/"+name, 0o755)
		}
		if err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
	}
	return nil
}
