package runtime

import (
	"io"
	"os"
	"time"
)

// Command is what to execute.
type Command struct {
	// Args is the program and its arguments. Args[0] without a slash is looked up in the PATH of Env.
	Args []string
	// Env holds NAME=value entries that win over the sandbox's and the snapshot's.
	Env []string
	// Dir is where it starts. Empty: the Spec's WorkDir. It must exist.
	Dir string
	// User overrides the Spec's.
	User string

	// Stdin is read until its end or the command's. Nil: the command sees end of file at once.
	Stdin io.Reader
	// Stdout and Stderr get all the output. Nil: the first Output bytes are kept in the Result, the
	// rest is counted and dropped. A slow writer slows the command down and loses nothing. When a
	// writer fails, the command finds that stream closed (SIGPIPE), as in any pipeline.
	Stdout, Stderr io.Writer
	// TTY gives it a terminal, whose output is all on Stdout; Stderr must be nil. Nil: plain pipes.
	TTY *TTY

	// Timeout is the wall time. Zero: 5 minutes; NoTimeout: none. Negative otherwise is an error.
	Timeout time.Duration
	// CPUTime is the time on CPUs of the whole tree, at least a millisecond. Zero: no limit.
	CPUTime time.Duration
	// Output is how much of each stream the Result keeps. Zero: 8 MiB.
	Output Bytes
	// OutputKill ends the command when a stream passes Output (reason output-limit), also when
	// Stdout and Stderr are set.
	OutputKill bool

	// Limits lowers the sandbox's for this command; more than those is ErrInvalid. Zero: the sandbox's.
	Limits Limits
	// Rlimits override the defaults: nofile 1024, core 1 byte, stack 16 MiB soft, memlock 8 MiB,
	// sigpending 4096, msgqueue 800 KiB, nice 0, rtprio 0; the others are the host's maxima.
	Rlimits []Rlimit
	// Seccomp overrides the Spec's profile (same forms).
	Seccomp string
	// TraceDenials fills Result.Denials with the system calls that the profile refused, at some cost.
	TraceDenials bool

	// Signals are passed on to the command's main process while it runs. Nil: none.
	Signals <-chan os.Signal
}
