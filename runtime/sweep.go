package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sweep clears what dead sandboxes left: those whose guest is gone, and those whose maker died before
// it started one. Whoever makes, stops or removes a sandbox holds its op lock, and is left alone.
func (rt *Runtime) sweep(ctx context.Context) error {
	ids, err := rt.store.list()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rt.sweepOne(id)
	}
	return nil
}

// sweepOne leaves alone what it cannot clear: the next sweep tries again.
func (rt *Runtime) sweepOne(id string) {
	op, err := rt.store.tryOp(id)
	if err != nil {
		return
	}
	defer op.Close()
	st, err := rt.store.load(id)
	switch {
	case errors.Is(err, ErrNotFound):
		_ = rt.discard(&state{ID: id})
	case err != nil || st.State == StateStopped || st.State == StateError:
	case st.State == StateCreating:
		// Its maker died. A process of the half-made sandbox may hold alive, but has no future.
		_ = rt.discard(st)
	case st.Transient && !rt.store.held(id, "owner"):
		// Its guest is ending by itself just now, since its owner died.
		_ = rt.discard(st)
	case rt.alive(id):
	case st.Transient:
		_ = rt.discard(st)
	case rt.clear(st) == nil:
		st.State, st.Reason = StateError, "its guest died"
		_ = rt.store.save(st)
	}
}

// tryOp takes a sandbox's operation lock if nobody has it. Makers of sandboxes hold the store's lock
// until they have the new one's, so a sandbox without locks has no maker.
func (s store) tryOp(id string) (*os.File, error) {
	path := filepath.Join(s.sandbox(id), "op")
	op, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		lock, err := lockFile(s.lock(), unix.LOCK_EX)
		if err != nil {
			return nil, err
		}
		defer lock.Close()
		op, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err // it is gone
		}
		return op, flock(op, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, err
	}
	if err := flock(op, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		op.Close()
		return nil, err
	}
	return op, nil
}

// alive: whether a guest, or a maker, holds the sandbox's alive lock.
func (rt *Runtime) alive(id string) bool { return rt.store.held(id, "alive") }

// held: whether some process has that lock of a sandbox.
func (s store) held(id, lock string) bool {
	f, err := os.OpenFile(filepath.Join(s.sandbox(id), lock), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// clear kills what is left of a sandbox and frees what it held on this boot: processes, cgroups, run
// directory, CPUs, and last its id range, which must not go to another while a process has it.
func (rt *Runtime) clear(st *state) error {
	tree, err := rt.cgroups()
	if err != nil {
		return err
	}
	group, err := tree.Load(st.ID)
	if err == nil {
		err = removeGroup(context.Background(), group)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return wrapStep("remove cgroups", st.ID, err)
	}
	fault("cleared")
	if err := os.RemoveAll(rt.store.runDir(st.ID)); err != nil {
		return &SetupError{"remove run directory", st.ID, plain(err)}
	}
	freeCPUs(rt.store.cpus(), st.ID, st.CPUs)
	if start, count, err := subIDBlock("/etc"); err == nil && st.UIDBase != 0 {
		freeRange(rt.store.ids(), st.ID, st.UIDBase, idBlock{start, count})
	}
	return nil
}

// discard is clear, and then the name and the files go.
func (rt *Runtime) discard(st *state) error {
	if err := rt.clear(st); err != nil {
		return err
	}
	if st.CreatedAt.IsZero() {
		rt.store.forget(st.ID)
	}
	if name := st.Spec.Name; name != "" {
		if id, err := os.Readlink(rt.store.name(name)); err == nil && id == st.ID {
			_ = os.Remove(rt.store.name(name))
		}
	}
	if err := os.RemoveAll(rt.store.sandbox(st.ID)); err != nil {
		return &SetupError{"remove sandbox", st.ID, plain(err)}
	}
	return nil
}
