package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// Group is a sandbox's groups. It is safe for concurrent use.
type Group struct {
	tree *Tree
	id   string

	mu    sync.Mutex
	x     *dirs // opened on first use
	owner Owner // read with it
}

// dirs are descriptors of one group in each hierarchy; of those that share one, the same. The group has
// a share in them and so has each leaf, and the last one closes them: a leaf must never work in what
// another has opened under the same number.
type dirs struct {
	v2     *os.File
	of     [numControllers]*os.File // nil: not made there
	shares int                      // guarded by Group.mu
}

// path is that of a group of the sandbox, relative to each hierarchy's root.
func (g *Group) path(sub string) string { return path.Join(g.tree.parent, g.id, sub) }

// GuestPath is the group that the engine makes for the guest, from each hierarchy's root.
func (g *Group) GuestPath() string { return "/" + g.path("guest") }

// build makes x with its limits, and what is needed to hand it out, in a group that has just been made.
func (g *Group) build(l Limits, owner Owner) error {
	t := g.tree
	for _, h := range t.used(false) {
		if _, err := ensureDir(h.root, g.path("")); err != nil {
			return err
		}
		if h.v2 && t.mode == Unified {
			if err := t.enable(g.path(""), memory, pids, cpu); err != nil {
				return err
			}
		}
		if err := makeDir(h.root, g.path("x")); err != nil {
			return err
		}
	}
	for _, s := range l.settings(t.mode, t.swapFile) {
		if s.file == "memory.oom.group" { // is for an execution, not for all of them
			continue
		}
		if err := explain(write(t.of[s.in].root, path.Join(g.path("x"), s.file), s.value)); err != nil {
			return err
		}
	}
	if t.mode == Unified {
		if err := t.enable(g.path("x"), memory, pids, cpu); err != nil {
			return err
		}
	}
	if l.CPUSet != "" {
		if err := g.limitCPUSet(l.CPUSet); err != nil {
			return err
		}
	}
	return chown(t.v2.root, g.path("cgroup.procs"), owner)
}

// chown: only who may write to cgroup.procs of a group, and of the nearest one above both it and
// one's own, may clone into it.
func chown(dir *os.File, file string, owner Owner) error {
	if owner == (Owner{}) {
		return nil
	}
	err := retry(func() error { return unix.Fchownat(int(dir.Fd()), file, owner.UID, owner.GID, 0) })
	if err != nil {
		return &fs.PathError{Op: "chown", Path: file, Err: err}
	}
	return nil
}

// explain says what the kernel means with EINVAL for a number that is one.
func explain(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: more than the group above allows", err)
	}
	return err
}

// open gives a share of x in each hierarchy, opened once. The caller must release it.
func (g *Group) open() (*dirs, Owner, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.x != nil {
		g.x.shares++
		return g.x, g.owner, nil
	}
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(int(g.tree.v2.root.Fd()), g.path("cgroup.procs"), &st, 0) })
	if err != nil {
		return nil, Owner{}, &fs.PathError{Op: "stat", Path: g.path("cgroup.procs"), Err: err}
	}
	x, err := g.tree.openDirs(g.path("x"))
	if err != nil {
		return nil, Owner{}, err
	}
	x.shares = 2
	g.x, g.owner = x, Owner{int(st.Uid), int(st.Gid)}
	return x, g.owner, nil
}

// release gives a share of open back.
func (g *Group) release(x *dirs) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(x)
}

// drop is release for who has the lock.
func (g *Group) drop(x *dirs) {
	if x.shares--; x.shares > 0 {
		return
	}
	x.v2.Close()
	for _, f := range x.of {
		if f != nil {
			f.Close() // again, where hierarchies are shared: an error that says nothing
		}
	}
}

// openDirs opens a group wherever it must be, and in the cpuset hierarchy if it is there.
func (t *Tree) openDirs(group string) (*dirs, error) {
	opened := map[*hierarchy]*os.File{}
	for _, h := range t.used(true) {
		f, err := openFile(h.root, group, unix.O_PATH|unix.O_DIRECTORY)
		if h == t.of[cpuset] && h != t.v2 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
			return nil, err
		}
		opened[h] = f
	}
	d := &dirs{v2: opened[t.v2]}
	for c, h := range t.of {
		if h != nil {
			d.of[c] = opened[h]
		}
	}
	return d, nil
}

// Close releases the descriptors that were opened for leaves; those that there are stay usable. The
// groups stay. A Group may be used after it, and opens them again.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.x != nil {
		g.drop(g.x)
		g.x = nil
	}
	return nil
}

// Kill sends SIGKILL to all executions, also those that are frozen or just being forked. The guest
// lives on. It does not wait: see WaitEmpty.
func (g *Group) Kill() error {
	if err := write(g.tree.v2.root, g.path("x/cgroup.kill"), "1"); err != nil {
		return fmt.Errorf("kill executions of %s: %w", g.id, err)
	}
	return nil
}

// Freeze stops all executions and returns when each is stopped, or thaws them again and returns ctx's
// error. The guest runs on.
func (g *Group) Freeze(ctx context.Context) error {
	return g.freeze(ctx, "1")
}

// Thaw lets the executions run again.
func (g *Group) Thaw(ctx context.Context) error {
	return g.freeze(ctx, "0")
}

func (g *Group) freeze(ctx context.Context, state string) error {
	root := g.tree.v2.root
	err := write(root, g.path("x/cgroup.freeze"), state)
	if err == nil {
		err = waitEvent(ctx, root, g.path("x/cgroup.events"), "frozen "+state)
		if err != nil && state == "1" {
			err = errors.Join(err, write(root, g.path("x/cgroup.freeze"), "0"))
		}
	}
	if err != nil {
		return fmt.Errorf("set frozen %s for executions of %s: %w", state, g.id, err)
	}
	return nil
}

// WaitEmpty returns when no execution has a process any more.
func (g *Group) WaitEmpty(ctx context.Context) error {
	if err := waitEvent(ctx, g.tree.v2.root, g.path("x/cgroup.events"), "populated 0"); err != nil {
		return fmt.Errorf("wait for the end of executions of %s: %w", g.id, err)
	}
	return nil
}

// Usage is that of all executions together, since the sandbox was created. v1 counts what memory and
// pids limits did only where it happened, so on Hybrid OOMKills and PIDsLimitHits are nil.
func (g *Group) Usage() (Usage, error) {
	x, _, err := g.open()
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", g.id, err)
	}
	defer g.release(x)
	var u values
	err = u.readCPU(x.v2, "cpu.stat")
	if err == nil {
		err = u.readGroup(g.tree.mode, x, "")
	}
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", g.id, err)
	}
	if g.tree.mode == Hybrid {
		u.known[hasOOMs], u.known[hasRefused] = false, false
	}
	return u.usage(), nil
}
