package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
	"github.com/husk-sandbox/husk/seccomp"
)

// finish reads the leaf's counters and says how it ended.
func (e *execution) finish(ctx context.Context, m guest.Message) (Result, error) {
	usage, err := e.leaf.Usage()
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENODEV) {
		// The sandbox was stopped by another process, which removes the groups once all is dead: how
		// the command ended is known all the same.
		usage, err = cgroup.Usage{}, nil
	}
	if err != nil {
		return Result{}, wrapStep("read usage", e.res.ID, err)
	}
	r := &e.res
	r.Wall = m.Wall
	r.measure(usage, m)
	r.DiskFull = e.fullMounts(m.Full)
	for _, d := range m.Denied {
		r.Denials = append(r.Denials, Denial{int(d.Number), seccomp.SyscallName(goruntime.GOARCH, int(d.Number)), int64(d.Count)})
	}
	e.streams.report(r)
	if m.Step != guest.StepNone {
		return e.notStarted(m)
	}
	r.Reason = e.reason(ctx, m)
	r.setStatus(m.Status)
	return *r, nil
}

func (r *Result) measure(u cgroup.Usage, m guest.Message) {
	r.CPUUser, r.CPUSystem = u.CPUUser, u.CPUSystem
	r.MemoryPeak, r.PIDsPeak = u.MemoryPeak, u.PIDsPeak
	r.OOMKills, r.PIDsLimitHits = u.OOMKills, u.PIDsLimitHits
	r.IORead, r.IOWrite = &m.IORead, &m.IOWrite
	if r.PIDsPeak != nil && *r.PIDsPeak > 0 {
		n := *r.PIDsPeak - 1 // without the reaper
		r.PIDsPeak = &n
	}
}

func (e *execution) fullMounts(full uint32) []string {
	var list []string
	if full == 0 {
		return nil
	}
	config := guestConfig(e.sb.st.Spec, e.sb.user(), host{})
	for i, mount := range config.Mounts {
		if full>>i&1 == 1 {
			list = append(list, mount.Target)
		}
	}
	return list
}

// user is the sandbox's own, not an execution's.
func (sb *Sandbox) user() user {
	u, _ := parseUser(sb.st.Spec.User) // was checked at create
	return u
}

func (r *Result) setStatus(s syscall.WaitStatus) {
	switch {
	case s.Exited():
		r.ExitCode = s.ExitStatus()
	case s.Signaled():
		r.ExitCode = 128 + int(s.Signal())
		r.Signal = unix.SignalName(s.Signal())
		if r.Signal == "" {
			r.Signal = fmt.Sprintf("SIG%d", int(s.Signal()))
		}
	}
}

// reason: who ended it.
func (e *execution) reason(ctx context.Context, m guest.Message) Reason {
	oom := e.res.OOMKills != nil && *e.res.OOMKills > 0
	killed := m.Status.Signaled() && m.Status.Signal() == syscall.SIGKILL
	switch m.Reason {
	case guest.ReasonWall:
		return ReasonTimeout
	case guest.ReasonCPU:
		return ReasonCPUTimeout
	case guest.ReasonOOM:
		return ReasonOOM
	case guest.ReasonStop:
		return ReasonKilled
	case guest.ReasonKill:
		return e.killReason(ctx)
	}
	switch {
	case m.MainEnded && m.Status.Exited():
		return ReasonExited
	case killed && oom:
		return ReasonOOM
	case !m.MainEnded:
		return e.killReason(ctx) // the leaf was killed from outside
	}
	return ReasonSignalled
}

func (e *execution) killReason(ctx context.Context) Reason {
	switch {
	case e.streams.overLimit():
		return ReasonOutputLimit
	case ctx.Err() != nil:
		return ReasonCancelled
	}
	return ReasonKilled
}

// notStarted: the program's own fault (126, 127) is a Result, ours an error.
func (e *execution) notStarted(m guest.Message) (Result, error) {
	r := &e.res
	name := e.cmd.Args[0]
	if m.Step != guest.StepExec {
		return Result{}, e.stepError(m)
	}
	r.Reason, r.ExitCode = ReasonNotStarted, 126
	switch m.Errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		r.ExitCode = 127
		r.Error = name + ": not found in PATH"
		if lookUp(name, nil)[0] == name {
			r.Error = name + ": no such file, or its interpreter is missing"
		}
	case syscall.E2BIG:
		r.Error = name + ": argument list too long: pass long text by a file or standard input"
	case syscall.ENOEXEC:
		r.Error = name + ": not a program for this machine, nor a script that begins with #!"
	default:
		r.Error = name + ": " + m.Errno.Error()
	}
	return *r, nil
}

func (e *execution) stepError(m guest.Message) error {
	subject := ""
	switch {
	case m.Step == guest.StepChdir:
		return &SetupError{"work dir", e.cmd.Dir, m.Errno}
	case m.Step == guest.StepRlimit && m.Index >= 0 && m.Index < guest.NRlimits:
		return &SetupError{"rlimit", rlimitNames()[m.Index], fmt.Errorf("more than this host allows: %w", m.Errno)}
	case m.Index >= 0:
		config := guestConfig(e.sb.st.Spec, e.sb.user(), host{})
		if m.Step != guest.StepMount && m.Step != guest.StepMount-1 {
			config.Mounts = nil
		}
		if m.Index < len(config.Mounts) {
			subject = config.Mounts[m.Index].Target
		}
	}
	return &SetupError{m.Step.String(), subject, m.Errno}
}

// drainQuiet is how long a stream may be silent after the command's end before it is given up: all of
// the command's processes are dead by then, and only a descriptor handed to another execution of the
// sandbox can hold the pipe open.
const drainQuiet = 500 * time.Millisecond
