package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
	"github.com/husk-sandbox/husk/images"
	"github.com/husk-sandbox/husk/runtime/internal/engine"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

// creation is a sandbox while it is being made.
type creation struct {
	rt    *Runtime
	st    *state
	user  user
	owner *os.File // nil, or the pipe whose end ends the sandbox

	op, alive *os.File
	ownerLock *os.File // with owner: says that this process lives
	block     idBlock
	tree      *cgroup.Tree
	group     *cgroup.Group
	guest     *engine.Guest
}

// create makes the sandbox step by step; each step that leaves something behind adds its undo.
func (rt *Runtime) create(ctx context.Context, spec Spec, owner *os.File) (*Sandbox, error) {
	id := randomID()
	c := &creation{rt: rt, owner: owner, st: &state{
		ID: id, Spec: spec.withDefaults(id), State: StateCreating, Transient: owner != nil, CreatedAt: time.Now().UTC(),
	}}
	if err := c.check(); err != nil {
		return nil, err
	}
	tree, err := rt.cgroups()
	if err != nil {
		return nil, err
	}
	go tree.WarmUp()
	if err := rt.sweep(ctx); err != nil {
		return nil, err
	}
	var undo cleanup
	defer undo.run()
	for _, step := range []func(*cleanup) error{c.makeDirs, c.takeName, c.takeIDs, c.makeGroup, c.save} {
		if err := step(&undo); err != nil {
			return nil, err
		}
	}
	if err := c.start(ctx, &undo); err != nil {
		return nil, wrapStep("start sandbox", id, err)
	}
	c.st.State = StateStarted
	if err := c.save(&undo); err != nil {
		return nil, err
	}
	sb := &Sandbox{rt: rt, st: c.st, group: c.group, guest: c.guest, owner: c.ownerLock}
	if err := sb.hello(ctx); err != nil {
		return nil, err
	}
	fault("created")
	undo.release()
	c.alive.Close() // the guest holds it from here on
	c.op.Close()
	return sb, nil
}

// check is everything that can be said without touching the host.
func (c *creation) check() error {
	s := c.st.Spec
	err := s.validate()
	if _, e := images.Resolve(s.Snapshot); e != nil {
		err = errors.Join(err, fmt.Errorf("%w %w", ErrInvalid, e))
	}
	if err != nil {
		return err
	}
	c.user, err = parseUser(s.User)
	if err != nil {
		return err
	}
	if err := checkCPUs(s.Limits); err != nil {
		return err
	}
	return checkSizes(s, s.places(c.user))
}

func (c *creation) makeDirs(undo *cleanup) error {
	dir := c.rt.store.sandbox(c.st.ID)
	lock, err := lockFile(c.rt.store.lock(), unix.LOCK_SH)
	if err != nil {
		return &SetupError{"lock store", c.rt.store.lock(), plain(err)}
	}
	defer lock.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return &SetupError{"make sandbox directory", dir, plain(err)}
	}
	undo.add(func() { _ = os.RemoveAll(dir) })
	locks := map[string]**os.File{"op": &c.op, "alive": &c.alive}
	if c.owner != nil {
		locks["owner"] = &c.ownerLock
	}
	for name, file := range locks {
		f, err := newLock(filepath.Join(dir, name))
		if err != nil {
			return &SetupError{"lock", filepath.Join(dir, name), plain(err)}
		}
		undo.add(func() { f.Close() })
		*file = f
	}
	run := c.rt.store.runDir(c.st.ID)
	undo.add(func() { _ = os.RemoveAll(run) })
	for _, d := range []string{run, filepath.Join(run, "root"), filepath.Join(run, "dev")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return &SetupError{"make run directory", d, plain(err)}
		}
	}
	fault("dirs")
	return nil
}

func (c *creation) takeName(undo *cleanup) error {
	name := c.st.Spec.Name
	if name == "" {
		return nil
	}
	path := c.rt.store.name(name)
	err := os.Symlink(c.st.ID, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s: remove that sandbox (husk rm %s) or choose another name", ErrExists, name, name)
	}
	if err != nil {
		return &SetupError{"take name", name, plain(err)}
	}
	undo.add(func() { _ = os.Remove(path) })
	return nil
}

func (c *creation) takeIDs(undo *cleanup) error {
	start, count, err := subIDBlock("/etc")
	if err != nil {
		return wrapStep("take id range", "", err)
	}
	c.block = idBlock{start, count}
	base, err := takeRange(c.rt.store.ids(), c.st.ID, c.block)
	if err != nil {
		return wrapStep("take id range", "", err)
	}
	c.st.UIDBase = base
	undo.add(func() { freeRange(c.rt.store.ids(), c.st.ID, base, c.block) })
	return c.takeCPUs(undo)
}

func (c *creation) takeCPUs(undo *cleanup) error {
	l := c.st.Spec.Limits
	allowed, err := allowedCPUs(l.CPUSet)
	if err != nil {
		return err
	}
	n := l.cpuCount()
	if c.st.Spec.CPUView == CPUViewHost {
		n = 0
	}
	cpus, err := takeCPUs(c.rt.store.cpus(), c.st.ID, n, allowed)
	if err != nil {
		return wrapStep("assign CPUs", "", err)
	}
	undo.add(func() { freeCPUs(c.rt.store.cpus(), c.st.ID, cpus) })
	if cpus == nil && l.CPUSet != "" {
		cpus = allowed
	}
	c.st.CPUs = cpus
	return nil
}

func (c *creation) makeGroup(undo *cleanup) error {
	tree, err := c.rt.cgroups()
	if err != nil {
		return err
	}
	limits := c.st.Spec.cgroupLimits(c.st.Spec.Limits)
	if limits.AllowSwap && !tree.CoversSwap() {
		c.st.Downgrades = append(c.st.Downgrades, DowngradeSwap)
	}
	if limits.PIDs > 0 {
		limits.PIDs += maxReapers // each execution has one besides what it was given
	}
	// killing the whole sandbox for one execution's memory is never wanted
	limits.OOMGroup = false
	group, err := tree.Create(c.st.ID, limits, cgroup.Owner{UID: c.st.UIDBase, GID: c.st.UIDBase})
	if err != nil {
		return wrapStep("make cgroups", c.st.ID, err)
	}
	c.tree, c.group = tree, group
	undo.add(func() { removeGroup(context.Background(), group) })
	fault("cgroups")
	return nil
}

// maxReapers is how many executions a guest can hold at once, one reaper each.
const maxReapers = 128

// removeGroup kills and removes everything of a sandbox in the cgroup file systems.
func removeGroup(ctx context.Context, group *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(ctx, killDeadline)
	defer cancel()
	return group.Remove(ctx)
}

// killDeadline bounds the waiting for killed processes to be gone.
const killDeadline = 10 * time.Second

func (s Spec) cgroupLimits(l Limits) cgroup.Limits {
	c := cgroup.Limits{CPUSet: l.CPUSet, OOMGroup: l.OOMGroup, AllowSwap: slices.Contains(s.AllowDowngrade, DowngradeSwap)}
	if l.Memory > 0 {
		c.Memory = int64(l.Memory)
	}
	if l.CPUs > 0 {
		c.CPUs = l.CPUs
	}
	if l.PIDs > 0 {
		c.PIDs = int64(l.PIDs)
	}
	return c
}

func (c *creation) save(*cleanup) error { return c.rt.store.save(c.st) }

// start has the engine build the sandbox around a guest.
func (c *creation) start(ctx context.Context, undo *cleanup) error {
	listen, err := guest.Listen(c.rt.store.socket(c.st.ID))
	if err != nil {
		return err
	}
	defer listen.Close()
	run := c.rt.store.runDir(c.st.ID)
	h := host{
		target: filepath.Join(run, "root"), dev: filepath.Join(run, "dev"), uidBase: c.st.UIDBase,
		cgroupDirs: c.tree.ViewDirs(), hostNetwork: c.st.Spec.Network.IsHost(),
	}
	g := guestConfig(c.st.Spec, c.user, h)
	if c.owner != nil {
		g.Flags |= guest.Owned
	}
	config := engine.Config{
		ID: c.st.ID, StateDir: run, CgroupPath: c.group.GuestPath(),
		HostNetwork: h.hostNetwork, Root: rootPlan(c.st.Spec, c.user, h, g), Guest: g,
	}
	start := engine.StartChild
	if c.rt.opts.InProcess {
		start = engine.Start
	}
	c.guest, err = start(ctx, config, engine.Files{Listen: listen, Alive: c.alive, Life: c.owner})
	if err != nil {
		return err
	}
	undo.add(func() { endGuest(c.guest) })
	fault("guest")
	return nil
}

// endGuest kills process 1, and so everything in the sandbox, and waits until it is dead.
func endGuest(g *engine.Guest) {
	fd := int(g.PidFD.Fd())
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	waitPidFD(fd, killDeadline)
	if g.Reap != nil {
		g.Reap()
	}
	g.PidFD.Close()
}

// waitPidFD waits until the process of a pidfd has ended; false when it has not by then.
func waitPidFD(fd int, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		left := time.Until(deadline)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(left, 0).Milliseconds()))
		if n > 0 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) || left <= 0 {
			return false
		}
	}
}
