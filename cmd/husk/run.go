package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/husk-sandbox/husk/images"
	"github.com/husk-sandbox/husk/runtime"
)

func runCommand(in *invocation) *command {
	var sandbox sandboxFlags
	var process commandFlags
	return &command{
		name: "run", summary: "run a command in a new sandbox, and leave nothing behind",
		usage: []string{"run [OPTIONS] [SNAPSHOT] -- COMMAND [ARG…]", "run [OPTIONS] SNAPSHOT COMMAND [ARG…]"},
		about: `
SNAPSHOT is the root file system; without one it is base host: this host's own
/usr, read-only. Without -- the first word is always the snapshot. Options go
before the first word; those after it belong to the command.

The exit code is the command's own; 128+n when signal n ended it; 124 when
--timeout, --cpu-time or --output-kill ended it; 125 when husk could not do
what was asked, wrong options included; 126 not executable; 127 not found.
INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to the command; the third INT
or TERM within two seconds kills it (exit code 130).

SIZE is a number with a unit b, k, m, g or t, in powers of 1024.`,
		examples: []string{
			"husk run -- python3 -c 'print(6*7)'",
			"husk run -it -- bash",
			"husk run --bind .:/src:rw -w /src --memory 1g --cpus 2 -- make -j2",
			"echo hello | husk run -i --net none --timeout 10 -- tr a-z A-Z",
			"husk run --json -e LANG=C -- ls /nowhere",
		},
		flags: func() []section { return append(process.sections(), sandbox.sections()...) },
		run: func(ctx context.Context, w words) (int, error) {
			return in.runIn(ctx, &sandbox, &process, w)
		},
	}
}

func (in *invocation) runIn(ctx context.Context, sandbox *sandboxFlags, process *commandFlags, w words) (int, error) {
	spec, c, err := in.runRequest(sandbox, process, w)
	if err != nil {
		return 0, err
	}
	rt, err := in.open()
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	res, err := in.attached(ctx, process, c, func(ctx context.Context, c runtime.Command) (runtime.Result, error) {
		return rt.Run(ctx, spec, c)
	})
	return in.report(process, res, snapshotHint(err, w), boundsOf(c, sandboxLimits(spec.Limits)))
}

// runRequest is what the command line asks for, or everything that is wrong with it.
func (in *invocation) runRequest(sandbox *sandboxFlags, process *commandFlags, w words) (runtime.Spec, runtime.Command, error) {
	var p problems
	spec := sandbox.spec(&p, in.lookupEnv)
	snapshot, args, err := runWords(w)
	if err != nil {
		p = append(p, err)
	}
	_, err = in.openTerminal(process)
	p.add("--tty", err)
	spec.Snapshot = snapshot
	return spec, process.command(&p, args), p.join()
}

// snapshotHint helps who left out the -- before a command of base host.
func snapshotHint(err error, w words) error {
	if w.dashed || !errors.Is(err, images.ErrNotFound) && !errors.Is(err, images.ErrName) || w.list[1] == "--" {
		return err
	}
	return fmt.Errorf("%w: if %s is the command, write husk run -- %s", err, quote(w.list[0]), quoteAll(w.list))
}
