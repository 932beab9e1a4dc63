package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/husk-sandbox/husk/cgroup"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
	"github.com/husk-sandbox/husk/seccomp"
)

// execution is one command on its way through the sandbox.
type execution struct {
	sb      *Sandbox
	cmd     Command // with its defaults
	user    user
	conn    *guest.Conn
	leaf    *cgroup.Leaf
	streams *streams
	res     Result
}

// Execute runs one command and waits for its end. Any number may run at once. When ctx ends, the
// command's whole tree is killed and the Result says cancelled. An error means that the command did
// not run, or that its end could not be seen: ErrInvalid, ErrStopped (nothing was started), or a
// SetupError.
func (sb *Sandbox) Execute(ctx context.Context, c Command) (Result, error) {
	c = c.withDefaults(sb.st.Spec)
	if err := c.validate(sb.st.Spec); err != nil {
		return Result{}, err
	}
	e := &execution{sb: sb, cmd: c}
	e.res = Result{ID: randomID(), Sandbox: sb.st.ID, Downgrades: sb.st.Downgrades}
	var undo cleanup
	defer undo.run()
	request, err := e.prepare(&undo)
	if err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("execute: %w", err)
	}
	m, err := e.run(ctx, request)
	if err != nil {
		return Result{}, err
	}
	res, err := e.finish(ctx, m)
	undo.release()
	e.settle(m)
	return res, err
}

// settle clears what is left when the Result is known. After an early report the namespaces are still
// being torn down; the caller does not have to wait for that, but Close and Remove do.
func (e *execution) settle(m guest.Message) {
	if m.Kind == guest.KindEnded {
		_ = e.leaf.Remove()
		_ = e.conn.SetDeadline(time.Time{})
		e.sb.putBack(e.conn)
		return
	}
	e.sb.pending.Add(1)
	go func() {
		defer e.sb.pending.Done()
		_ = e.conn.SetDeadline(time.Now().Add(killDeadline))
		m, _, err := e.conn.Receive()
		_ = e.conn.SetDeadline(time.Time{})
		_ = e.leaf.Remove()
		if err != nil || m.Kind != guest.KindEnded {
			e.conn.Close()
			return
		}
		e.sb.putBack(e.conn)
	}()
}

// prepare makes everything that the guest is handed.
func (e *execution) prepare(undo *cleanup) (*guest.Exec, error) {
	u, err := parseUser(e.cmd.User)
	if err != nil {
		return nil, err
	}
	e.user = u
	request, err := e.request()
	if err != nil {
		return nil, err
	}
	group, err := e.sb.cgroups()
	if err != nil {
		return nil, err
	}
	limits := e.sb.st.Spec.cgroupLimits(e.cmd.Limits)
	if limits.PIDs > 0 {
		limits.PIDs++ // the reaper
	}
	if limits.CPUSet == e.sb.st.Spec.Limits.CPUSet {
		limits.CPUSet = "" // the sandbox's group has it
	}
	if e.leaf, err = group.Leaf(e.res.ID, limits); err != nil {
		return nil, e.lostOr(wrapStep("make cgroup", e.res.ID, err))
	}
	undo.add(func() { _ = e.leaf.Remove() })
	request.Into, request.Tasks, request.CPUFile = e.leaf.Into(), e.leaf.Tasks(), e.leaf.CPUFile()
	request.CPUv1 = e.leaf.CPUFileIsV1()
	if request.OOMEvents, err = e.leaf.OOMEvents(); err != nil {
		return nil, wrapStep("watch memory", e.res.ID, err)
	}
	if e.conn, err = e.sb.connect(); err != nil {
		return nil, err
	}
	if e.streams, err = newStreams(&e.cmd, e.killForOutput); err != nil {
		e.conn.Close()
		return nil, err
	}
	base := e.sb.st.UIDBase
	if err := e.streams.giveTo(base+int(u.uid), base+int(u.gid)); err != nil {
		e.streams.abandon()
		e.conn.Close()
		return nil, err
	}
	request.Stdin, request.Stdout, request.Stderr = e.streams.stdin, e.streams.stdout, e.streams.stderr
	return request, nil
}

// lostOr is ErrStopped when the sandbox ended under us, else err.
func (e *execution) lostOr(err error) error {
	if errors.Is(err, os.ErrNotExist) && !e.sb.rt.alive(e.sb.st.ID) {
		return e.sb.stopped()
	}
	return err
}

// request is the part that needs no descriptors.
func (e *execution) request() (*guest.Exec, error) {
	c, spec := e.cmd, e.sb.st.Spec
	limits, err := rlimits(c.Rlimits)
	if err != nil {
		return nil, err
	}
	filter, err := compile(c, spec, e.user)
	if err != nil {
		return nil, err
	}
	env := environment(spec, c, e.user)
	request := &guest.Exec{
		Args: c.Args, Env: env, Paths: lookUp(c.Args[0], env), Dir: c.Dir,
		UID: e.user.uid, GID: e.user.gid, Caps: e.user.caps(), Umask: 0o022,
		Filter: filter.Filter, Errnos: filter.Errnos, Trace: c.TraceDenials,
		Wall: max(c.Timeout, 0), CPUTime: c.CPUTime, CPUs: uint32(max(c.Limits.cpuCount(), 1)),
		Rlimits: limits.all, RlimitSet: limits.mask, Affinity: e.sb.st.CPUs,
	}
	if c.Limits.CPUs < 0 {
		request.CPUs = 64
	}
	if n := c.Limits.cpuCount(); n > 0 && n < len(request.Affinity) {
		request.Affinity = request.Affinity[:n]
	}
	if c.TTY != nil {
		request.TTY, request.Rows, request.Cols = true, c.TTY.Rows, c.TTY.Cols
	}
	return request, nil
}

// profileOf is a profile by name, or by its text.
func profileOf(text string) (seccomp.Profile, error) {
	if len(text) > 0 && text[0] == '{' {
		return seccomp.Parse([]byte(text))
	}
	p, ok := seccomp.ByName(text)
	if !ok {
		return p, fmt.Errorf("seccomp profile %q: want default, strict, unconfined, or a profile's JSON text", text)
	}
	return p, nil
}

func compile(c Command, s Spec, u user) (*seccomp.Program, error) {
	p, err := profileOf(c.Seccomp)
	if err != nil {
		return nil, err
	}
	writable := false
	for _, b := range s.Binds {
		writable = writable || !b.ReadOnly
	}
	program, err := p.Compile(seccomp.Options{Caps: u.capNames(), NoSetID: writable, Trace: c.TraceDenials})
	if err != nil {
		return nil, &SetupError{"compile seccomp profile", "", err}
	}
	return program, nil
}

// run starts the execution and waits for its end.
func (e *execution) run(ctx context.Context, request *guest.Exec) (guest.Message, error) {
	e.res.Started = time.Now()
	if err := e.conn.Start(request); err != nil {
		e.streams.abandon()
		e.conn.Close()
		return guest.Message{}, e.broken(err)
	}
	e.streams.start()
	unhook := context.AfterFunc(ctx, e.kill)
	defer unhook()
	done := make(chan struct{})
	defer close(done)
	e.forward(done)
	m, err := e.wait()
	if err != nil {
		_ = e.leaf.Kill()
		e.streams.abandon()
		e.conn.Close()
		return guest.Message{}, err
	}
	if err := e.streams.finish(); err != nil && e.res.Error == "" {
		e.res.Error = err.Error()
	}
	return m, nil
}

// kill ends the whole tree of the execution. If the guest cannot be told, the leaf is killed. From here on
// the end must come soon.
func (e *execution) kill() {
	if e.conn.Kill() != nil {
		_ = e.leaf.Kill()
	}
	_ = e.conn.SetDeadline(time.Now().Add(killDeadline))
}

func (e *execution) killForOutput() { e.kill() }

// forward passes the caller's signals and window sizes on until done.
func (e *execution) forward(done <-chan struct{}) {
	if e.cmd.Signals != nil {
		go func() {
			for {
				select {
				case sig := <-e.cmd.Signals:
					if s, ok := sig.(syscall.Signal); ok {
						_ = e.conn.Signal(s)
					}
				case <-done:
					return
				}
			}
		}()
	}
	if e.cmd.TTY != nil && e.cmd.TTY.Resize != nil {
		go func() {
			for {
				select {
				case size := <-e.cmd.TTY.Resize:
					e.streams.resize(size)
				case <-done:
					return
				}
			}
		}()
	}
}

// wait reads the guest's messages until the end of the execution.
func (e *execution) wait() (guest.Message, error) {
	for {
		m, file, err := e.conn.Receive()
		if err != nil {
			return m, e.broken(err)
		}
		switch m.Kind {
		case guest.KindStarted:
			fault("started")
			if e.cmd.Timeout > 0 {
				// the guest ends it in time; this is for a guest that does not
				_ = e.conn.SetDeadline(time.Now().Add(e.cmd.Timeout + killDeadline))
			}
		case guest.KindTTY:
			e.streams.attach(file)
		case guest.KindEnded, guest.KindDone:
			return m, nil
		case guest.KindRefused:
			return m, e.refused(m.Errno)
		default:
			return m, &SetupError{"talk to guest", e.sb.st.ID, fmt.Errorf("unexpected message %d", m.Kind)}
		}
	}
}

func (e *execution) refused(errno syscall.Errno) error {
	switch errno {
	case syscall.ESHUTDOWN:
		return e.sb.stopped()
	case syscall.EPROTONOSUPPORT:
		return &SetupError{"talk to guest", e.sb.st.ID, errors.New("the sandbox was made by another version of husk: stop it and make it anew")}
	}
	return &SetupError{"start execution", e.res.ID, errno}
}

// broken says what a lost connection means: the guest is gone.
func (e *execution) broken(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("the guest does not report the end of the execution, which was killed now")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return e.sb.stopped()
	}
	return &SetupError{"talk to guest", e.sb.st.ID, err}
}
