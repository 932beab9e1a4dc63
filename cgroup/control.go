package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill kills every process of every execution; the guest survives.
func (g *Group) Kill() error {
	return writeFile(unix.AT_FDCWD, filepath.Join(g.top(), "x", "cgroup.kill"), "1")
}

// Freeze stops every process of every execution, and waits until they stand.
func (g *Group) Freeze(ctx context.Context) error { return g.freeze(ctx, "1") }

// Thaw lets them go on.
func (g *Group) Thaw(ctx context.Context) error { return g.freeze(ctx, "0") }

func (g *Group) freeze(ctx context.Context, value string) error {
	x := filepath.Join(g.top(), "x")
	if err := writeFile(unix.AT_FDCWD, filepath.Join(x, "cgroup.freeze"), value); err != nil {
		return err
	}
	return waitEvent(ctx, x, "frozen "+value)
}

// WaitEmpty waits until no execution has a process any more.
func (g *Group) WaitEmpty(ctx context.Context) error {
	return waitEvent(ctx, filepath.Join(g.top(), "x"), "populated 0")
}

// waitEvent waits until cgroup.events of dir says line; the kernel tells when the file changes.
func waitEvent(ctx context.Context, dir, line string) error {
	path := filepath.Join(dir, "cgroup.events")
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	for {
		var buf [256]byte
		n, err := unix.Pread(fd, buf[:], 0)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if strings.Contains("\n"+string(buf[:n]), "\n"+line+"\n") {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %q in %s: %w", line, path, ctx.Err())
		}
		// short enough to notice a context that is cancelled without a deadline
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll %s: %w", path, err)
		}
	}
}

// Remove kills everything in the sandbox's groups, the guest included, waits until it is gone, and
// removes the groups from every hierarchy. Idempotent. ctx should have a deadline.
func (g *Group) Remove(ctx context.Context) error {
	g.closeDirs()
	top := g.top()
	if exists(top) {
		// v1's freezer is not used by us; v2's lets frozen processes be killed, and thawing first costs nothing
		_ = writeFile(unix.AT_FDCWD, filepath.Join(top, "x", "cgroup.freeze"), "0")
		if err := writeFile(unix.AT_FDCWD, filepath.Join(top, "cgroup.kill"), "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := waitEvent(ctx, top, "populated 0"); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	var first error
	for _, h := range g.tree.all() {
		if err := removeTree(ctx, filepath.Join(h.mount, g.tree.parent, g.id)); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// removeTree removes a directory of groups from the bottom up; what is not there is fine.
func removeTree(ctx context.Context, dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove group: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return rmdirRetry(ctx, dir)
}

// rmdirRetry: a group may be busy for a moment after its last process has gone, and nothing tells when
// that is over.
func rmdirRetry(ctx context.Context, dir string) error {
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || ctx.Err() != nil {
			return fmt.Errorf("remove group %s: %w", dir, err)
		}
		time.Sleep(wait)
	}
}
