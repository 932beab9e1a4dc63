package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
	"github.com/husk-sandbox/husk/runtime/internal/engine"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

// DefaultGrace is the time between SIGTERM and SIGKILL in Stop.
const DefaultGrace = 10 * time.Second

// Sandbox is a handle on a sandbox. It holds no lock: the sandbox may end at any time, and calls then
// say ErrStopped.
type Sandbox struct {
	rt    *Runtime
	st    *state
	guest *engine.Guest // nil when another process made it, or it was handed back
	owner *os.File      // of Run's: a lock that says that its maker lives; closed with the process

	pending sync.WaitGroup // executions whose Result is known, but whose leaf is not yet removed

	mu    sync.Mutex
	group *cgroup.Group
	idle  []*guest.Conn // connections without an execution
}

// ID is the generated id.
func (sb *Sandbox) ID() string { return sb.st.ID }

// Name is the Spec's name, or empty.
func (sb *Sandbox) Name() string { return sb.st.Spec.Name }

// Info reads the state from disk. That of a sandbox whose guest died is put right by the next List,
// Create or Run.
func (sb *Sandbox) Info() (Info, error) {
	st, err := sb.rt.store.load(sb.st.ID)
	if err != nil {
		return Info{}, err
	}
	return st.info(), nil
}

// maxIdle is how many connections are kept for the next executions; one costs the guest a slot.
const maxIdle = 16

// connect takes an idle connection or makes one. Any failure to reach the guest is ErrStopped.
func (sb *Sandbox) connect() (*guest.Conn, error) {
	sb.mu.Lock()
	if n := len(sb.idle); n > 0 {
		c := sb.idle[n-1]
		sb.idle = sb.idle[:n-1]
		sb.mu.Unlock()
		return c, nil
	}
	sb.mu.Unlock()
	c, err := guest.Dial(sb.rt.store.socket(sb.st.ID))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return nil, sb.stopped()
	}
	if err != nil {
		return nil, &SetupError{"connect to sandbox", sb.st.ID, err}
	}
	return c, nil
}

func (sb *Sandbox) stopped() error { return fmt.Errorf("%w: %s", ErrStopped, sb.label()) }

// label is what a user calls it.
func (sb *Sandbox) label() string {
	if sb.st.Spec.Name != "" {
		return sb.st.Spec.Name
	}
	return sb.st.ID
}

func (sb *Sandbox) putBack(c *guest.Conn) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if len(sb.idle) < maxIdle {
		sb.idle = append(sb.idle, c)
		return
	}
	c.Close()
}

func (sb *Sandbox) closeIdle() {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	for _, c := range sb.idle {
		c.Close()
	}
	sb.idle = nil
}

// Close waits until what ended executions held is given back, a few milliseconds, and gives up this
// handle's connections; the sandbox lives on. Executions under way are not touched. A program that ends
// without Close leaves an empty cgroup for each of its last executions, until the sandbox ends.
func (sb *Sandbox) Close() error {
	sb.pending.Wait()
	sb.closeIdle()
	if sb.guest != nil {
		sb.guest.PidFD.Close()
		sb.guest = nil
	}
	return nil
}

// helloDeadline is how long a new guest may take to answer; it needs well under a millisecond.
const helloDeadline = 30 * time.Second

// hello waits for the guest's first sign of life. A guest that could not start has an exit code for it.
func (sb *Sandbox) hello(ctx context.Context) error {
	c, err := sb.connect()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(helloDeadline)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.SetDeadline(deadline)
	err = c.Hello()
	var m guest.Message
	if err == nil {
		m, _, err = c.Receive()
	}
	if err != nil || m.Kind != guest.KindVersion {
		c.Close()
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
			err = errors.New("the guest ended at its start; is a security module or sysctl of this host in the way?")
		}
		return &SetupError{"start guest", sb.st.ID, err}
	}
	_ = c.SetDeadline(time.Time{})
	sb.putBack(c)
	return nil
}

// cgroups is the sandbox's group, loaded on first use.
func (sb *Sandbox) cgroups() (*cgroup.Group, error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.group != nil {
		return sb.group, nil
	}
	tree, err := sb.rt.cgroups()
	if err != nil {
		return nil, err
	}
	group, err := tree.Load(sb.st.ID)
	if errors.Is(err, os.ErrNotExist) {
		return nil, sb.stopped() // its groups go when it ends
	}
	if err != nil {
		return nil, wrapStep("open cgroups", sb.st.ID, err)
	}
	sb.group = group
	return group, nil
}

// Stop is StopWithin with DefaultGrace.
func (sb *Sandbox) Stop(ctx context.Context) error { return sb.StopWithin(ctx, DefaultGrace) }

// StopWithin sends SIGTERM to every execution's main process, kills what is left after grace, and ends
// the sandbox. It returns when everything is dead; stopping what is stopped is no error. Executions
// that are waited for end with reason killed. What lived on tmpfs is gone.
func (sb *Sandbox) StopWithin(ctx context.Context, grace time.Duration) error {
	if grace < 0 {
		return fmt.Errorf("%w grace %v: negative", ErrInvalid, grace)
	}
	op, err := sb.lockOp(ctx)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer op.Close()
	if err := sb.askToEnd(ctx, grace); err != nil {
		return err
	}
	return sb.bury("stopped")
}

// Terminate kills everything in the sandbox now. Idempotent, from any state.
func (sb *Sandbox) Terminate(ctx context.Context) error { return sb.StopWithin(ctx, 0) }

// askToEnd tells the guest to stop and waits for its end; a guest that is gone already is fine, and
// one that does not answer is killed by its caller.
func (sb *Sandbox) askToEnd(ctx context.Context, grace time.Duration) error {
	sb.closeIdle()
	c, err := sb.connect()
	if errors.Is(err, ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(grace + killDeadline))
	unhook := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer unhook()
	if err := c.Stop(grace); err != nil {
		return nil //nolint:nilerr // it ended between connect and stop
	}
	for {
		if _, _, err := c.Receive(); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("stop %s: waiting for its executions to end: %w", sb.label(), ctx.Err())
			}
			return nil
		}
	}
}

// lockOp waits for the sandbox's operation lock. ErrNotFound when the sandbox was removed meanwhile.
func (sb *Sandbox) lockOp(ctx context.Context) (*os.File, error) {
	path := filepath.Join(sb.rt.store.sandbox(sb.st.ID), "op")
	type answer struct {
		f   *os.File
		err error
	}
	done := make(chan answer, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = flock(f, unix.LOCK_EX)
		}
		// removed while we waited: the lock is on a file that no longer has a name
		if _, e := os.Stat(path); err == nil && e != nil {
			f.Close()
			err = e
		}
		done <- answer{f, err}
	}()
	select {
	case a := <-done:
		if errors.Is(a.err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, sb.label())
		}
		if a.err != nil {
			return nil, &SetupError{"lock sandbox", sb.st.ID, plain(a.err)}
		}
		return a.f, nil
	case <-ctx.Done():
		go func() {
			if a := <-done; a.err == nil {
				a.f.Close()
			}
		}()
		return nil, fmt.Errorf("lock sandbox %s: another operation on it is under way: %w", sb.label(), ctx.Err())
	}
}

// bury clears what a sandbox holds besides its directory, and marks it stopped. The caller has op.
func (sb *Sandbox) bury(reason string) error {
	if sb.guest != nil {
		endGuest(sb.guest)
		sb.guest = nil
	}
	sb.pending.Wait()
	if err := sb.rt.clear(sb.st); err != nil {
		return err
	}
	st, err := sb.rt.store.load(sb.st.ID)
	if err != nil || st.State == StateStopped {
		return err
	}
	st.State, st.Reason = StateStopped, reason
	return sb.rt.store.save(st)
}

// Remove destroys the sandbox with its files. A running one is refused unless force is set.
func (sb *Sandbox) Remove(ctx context.Context, force bool) error {
	if !force && sb.rt.alive(sb.st.ID) {
		return fmt.Errorf("%w: %s is running: stop it first, or remove it with force (husk rm -f)", ErrInvalid, sb.label())
	}
	return sb.destroy(ctx)
}

// destroy ends it now and removes everything.
func (sb *Sandbox) destroy(ctx context.Context) error {
	sb.closeIdle()
	op, err := sb.lockOp(ctx)
	if err != nil {
		return err
	}
	defer op.Close()
	if sb.owner == nil {
		// others may wait for executions of it, which end with reason killed
		if err := sb.askToEnd(ctx, 0); err != nil {
			return err
		}
	}
	if sb.guest != nil {
		endGuest(sb.guest)
		sb.guest = nil
	}
	sb.pending.Wait()
	fault("destroy")
	err = sb.rt.discard(sb.st)
	if sb.owner != nil {
		sb.owner.Close()
	}
	return err
}

func sortInfos(infos []Info) {
	sort.Slice(infos, func(i, j int) bool {
		if !infos[i].CreatedAt.Equal(infos[j].CreatedAt) {
			return infos[i].CreatedAt.Before(infos[j].CreatedAt)
		}
		return infos[i].ID < infos[j].ID
	})
}
