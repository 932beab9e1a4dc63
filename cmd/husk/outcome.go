package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// Exit codes besides the program's own and exitOurs.
const (
	exitLimit     = 124 // a limit on time or output ended it; as timeout(1) says it
	exitCancelled = 130 // the third interrupt ended it; as shells say SIGINT
	exitKilled    = 137 // 128 + SIGKILL
)

// bounds are the limits that a notice may name; zero means that the number is not known.
type bounds struct {
	timeout, cpuTime time.Duration
	output, memory   runtime.Bytes
	pids             int
}

// boundsOf fills in the defaults of a command; l are the limits that hold for it, as far as known.
func boundsOf(c runtime.Command, l runtime.Limits) bounds {
	b := bounds{timeout: c.Timeout, cpuTime: c.CPUTime, output: c.Output, memory: l.Memory, pids: l.PIDs}
	if b.timeout == 0 {
		b.timeout = runtime.DefaultTimeout
	}
	if b.output == 0 {
		b.output = runtime.DefaultOutput
	}
	return b
}

// sandboxLimits fills in the defaults of a new sandbox.
func sandboxLimits(l runtime.Limits) runtime.Limits {
	if l.Memory == 0 {
		l.Memory = runtime.DefaultMemory
	}
	if l.PIDs == 0 {
		l.PIDs = runtime.DefaultPIDs
	}
	return l
}

// exitCode is what husk exits with after this result.
func exitCode(r runtime.Result) int {
	switch r.Reason {
	case runtime.ReasonTimeout, runtime.ReasonCPUTimeout, runtime.ReasonOutputLimit:
		return exitLimit
	case runtime.ReasonCancelled:
		return exitCancelled
	case runtime.ReasonOOM, runtime.ReasonKilled:
		if r.ExitCode == 0 {
			return exitKilled
		}
	}
	return r.ExitCode
}

// notices say what the user cannot see from the program's output and the exit code.
func notices(r runtime.Result, b bounds) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch r.Reason {
	case runtime.ReasonTimeout:
		say("timed out after %v (--timeout)", b.timeout)
	case runtime.ReasonCPUTimeout:
		say("used up its CPU time of %v (--cpu-time)", b.cpuTime)
	case runtime.ReasonOutputLimit:
		say("ended: wrote more than %v (--output)", b.output)
	case runtime.ReasonKilled:
		say("killed: the sandbox was stopped")
	case runtime.ReasonCancelled:
		say("killed: interrupted")
	case runtime.ReasonNotStarted:
		say("%s", r.Error)
	}
	if n := count(r.OOMKills); n > 0 || r.Reason == runtime.ReasonOOM {
		say("out of memory: %s killed at the limit%s (--memory)", plural(max(n, 1), "process", "processes"), of(b.memory))
	}
	if exitCode(r) == 0 {
		return append(list, denials(r)...)
	}
	if n := count(r.PIDsLimitHits); n > 0 {
		limit := ""
		if b.pids > 0 {
			limit = fmt.Sprintf(" of %d", b.pids)
		}
		say("%s refused at the limit%s (--pids)", plural(n, "new process", "new processes"), limit)
	}
	if len(r.DiskFull) > 0 {
		say("no space left on %s (--tmpfs DST:size=… makes it larger)", strings.Join(r.DiskFull, ", "))
	}
	return append(list, denials(r)...)
}

func denials(r runtime.Result) []string {
	if len(r.Denials) == 0 {
		return nil
	}
	calls := make([]string, len(r.Denials))
	for i, d := range r.Denials {
		calls[i] = fmt.Sprintf("%s (%d)", d.Name, d.Count)
	}
	return []string{"refused system calls: " + strings.Join(calls, ", ")}
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func of(limit runtime.Bytes) string {
	if limit <= 0 {
		return ""
	}
	return " of " + limit.String()
}

// writeJSON prints one value on one line.
func writeJSON(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if _, err = w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}
