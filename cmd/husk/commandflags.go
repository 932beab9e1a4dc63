package main

import (
	"errors"

	"github.com/husk-sandbox/husk/runtime"
)

// commandFlags are the flags that describe one execution, as the user wrote them.
type commandFlags struct {
	stdin, tty, json         bool
	timeout, cpuTime, output string
	outputKill, traceDenials bool
	rlimitTexts              []string
}

func (f *commandFlags) sections() []section {
	return []section{
		{"Streams and result", []*option{
			toggle("stdin", "pass standard input on (default: the program reads end of file)", &f.stdin).as("i"),
			toggle("interactive", "the same as --stdin", &f.stdin),
			toggle("tty", "give it a terminal; with -i, this one", &f.tty).as("t"),
			toggle("json", "print the result as JSON, output included, instead of passing the output through", &f.json),
		}},
		{"Limits of the execution", []*option{
			text("timeout", "TIME", "wall time: seconds (30, 0.5) or 5m, 1h30m; or none (default 5m; with --tty none)",
				&f.timeout),
			text("cpu-time", "TIME", "time on CPUs of all its processes, or none (default none)", &f.cpuTime),
			text("output", "SIZE", "how much of stdout and of stderr --json keeps and --output-kill allows, or "+
				"unlimited (default 8m)", &f.output),
			toggle("output-kill", "end it when it writes more than --output", &f.outputKill),
			list("rlimit", "NAME=SOFT[:HARD]", "kernel limit of each process, such as nofile=4096, fsize=10m, "+
				"stack=64m:unlimited (default nofile 1024, core 1 byte, stack 16m soft, memlock 8m, sigpending 4096, "+
				"msgqueue 800k, nice 0, rtprio 0, others as high as this host allows); repeatable", &f.rlimitTexts),
			toggle("trace-denials", "report the system calls that the seccomp profile refused, at some cost", &f.traceDenials),
		}},
	}
}

// command is the Command that the flags ask for, without its streams; what is wrong goes to p.
func (f *commandFlags) command(p *problems, args []string) runtime.Command {
	c := runtime.Command{
		Args: args, Timeout: p.duration("--timeout", f.timeout, runtime.NoTimeout),
		CPUTime: p.duration("--cpu-time", f.cpuTime, 0), Output: p.size("--output", f.output), OutputKill: f.outputKill,
		Rlimits: p.rlimits("--rlimit", f.rlimitTexts), TraceDenials: f.traceDenials,
	}
	if f.tty && f.timeout == "" {
		c.Timeout = runtime.NoTimeout
	}
	if f.tty && f.json {
		p.add("--json", errors.New("not with --tty: a terminal's output is for its user"))
	}
	return c
}
