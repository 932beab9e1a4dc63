package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Remove kills everything of the sandbox, the guest as well, waits until it is gone, and removes its
// groups in every hierarchy, also those that others made below. Frozen executions are thawed, since
// some kernels leave them. It may be called again, and for what is there only in part.
func (g *Group) Remove(ctx context.Context) error {
	g.Close()
	err := write(g.tree.v2.root, g.path("x/cgroup.freeze"), "0")
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		err = g.tree.remove(ctx, g.path(""), "guest", "x")
	}
	if err != nil {
		return fmt.Errorf("remove groups of %s: %w", g.id, err)
	}
	return nil
}

// removeEmpty undoes a Create that did not succeed.
func (g *Group) removeEmpty() {
	for _, h := range g.tree.used(true) {
		_ = h.removeTree(g.path(""))
	}
}

// remove kills what is in a group, waits for the end of it, and removes the group everywhere. It need not
// look for those groups below that are named.
func (t *Tree) remove(ctx context.Context, group string, below ...string) error {
	err := write(t.v2.root, path.Join(group, "cgroup.kill"), "1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	if err := waitEvent(ctx, t.v2.root, path.Join(group, "cgroup.events"), "populated 0"); err != nil {
		return err
	}
	for _, h := range t.all {
		for _, name := range below {
			_ = removeDir(h.root, group+"/"+name) // what stays makes the group busy
		}
		if err := h.remove(ctx, group); err != nil {
			return fmt.Errorf("%s: %w", h.point, err)
		}
	}
	return nil
}

// maxTries bounds how often a group may get new inhabitants while it is being removed.
const maxTries = 20

// remove removes a group whose processes are dead as far as the v2 tree knows. A v1 hierarchy may hold
// one more: the engine's child, if it was killed while moving itself from one to the next.
func (h *hierarchy) remove(ctx context.Context, group string) error {
	for try := 1; ; try++ {
		err := h.removeTree(group)
		if !errors.Is(err, unix.EBUSY) || try == maxTries {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s is busy: %w", group, err)
		}
		if err := h.endAll(ctx, group); err != nil {
			return err
		}
	}
}

// removeTree removes a group from the bottom up. None there is fine.
func (h *hierarchy) removeTree(group string) error {
	err := removeDir(h.root, group)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	names, errList := children(h.root, group)
	if errList != nil {
		return errList
	}
	if len(names) == 0 {
		return err // by its processes
	}
	for _, name := range names {
		if err := h.removeTree(path.Join(group, name)); err != nil {
			return err
		}
	}
	err = removeDir(h.root, group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// endAll kills the processes of a group and those below, and waits for their end.
func (h *hierarchy) endAll(ctx context.Context, group string) error {
	if h.v2 {
		err := write(h.root, path.Join(group, "cgroup.kill"), "1")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return waitEvent(ctx, h.root, path.Join(group, "cgroup.events"), "populated 0")
	}
	names, err := children(h.root, group)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := h.endAll(ctx, path.Join(group, name)); err != nil {
			return err
		}
	}
	list, err := h.processes(group)
	for _, pid := range list {
		if err := h.end(ctx, group, pid); err != nil {
			return err
		}
	}
	return err
}

func (h *hierarchy) processes(group string) ([]int, error) {
	text, err := readText(h.root, path.Join(group, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	var list []int
	for word := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(word)
		if err == nil && pid == 0 {
			err = errors.New("a process of another pid namespace is in it")
		}
		if err != nil {
			return nil, fmt.Errorf("list processes of %s: %w", group, err)
		}
		list = append(list, pid)
	}
	return list, err
}

// end kills one process. The number may have passed to another process before we have a descriptor,
// so it is looked for once more.
func (h *hierarchy) end(ctx context.Context, group string, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d of %s: %w", pid, group, err)
	}
	defer unix.Close(fd)
	list, err := h.processes(group)
	if err != nil || !slices.Contains(list, pid) {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("kill process %d of %s: %w", pid, group, err)
	}
	cancelled, err := newCancelFile(ctx)
	if err != nil {
		return err
	}
	defer cancelled.close()
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, cancelled.poll()}
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for process %d of %s: %w", pid, group, err)
		case fds[0].Revents != 0:
			return nil
		default:
			return fmt.Errorf("process %d of %s does not end: %w", pid, group, ctx.Err())
		}
	}
}
