package main

import (
	"context"
	"fmt"

	"github.com/husk-sandbox/husk/runtime"
)

// execute is Runtime.Run or Sandbox.Execute.
type execute func(context.Context, runtime.Command) (runtime.Result, error)

// attached executes a command with husk's own streams, terminal and signals.
func (in *invocation) attached(ctx context.Context, f *commandFlags, c runtime.Command, do execute) (runtime.Result, error) {
	ctx, signals, stop := passSignals(ctx)
	defer stop()
	c.Signals = signals
	if f.stdin {
		c.Stdin = in.stdin
	}
	if f.tty {
		t, err := in.openTerminal(f)
		if err != nil {
			return runtime.Result{}, err
		}
		c.Stdout = in.stdout
		return t.attached(ctx, c, do)
	}
	if !f.json {
		c.Stdout, c.Stderr = in.stdout, in.stderr
	}
	return do(ctx, c)
}

// attached executes a command on the caller's terminal.
func (t *terminal) attached(ctx context.Context, c runtime.Command, do execute) (runtime.Result, error) {
	// The size is read after the watch began: no change is lost between.
	sizes, stop := t.watch()
	defer stop()
	size := t.size()
	c.TTY = &runtime.TTY{Rows: size.Rows, Cols: size.Cols, Resize: sizes}
	if err := t.raw(); err != nil {
		return runtime.Result{}, err
	}
	defer t.restore()
	return do(ctx, c)
}

// report prints how it ended, and says with which code husk exits. err is the runtime's; a result may
// come along with it.
func (in *invocation) report(f *commandFlags, res runtime.Result, err error, b bounds) (int, error) {
	if err != nil && res.Reason == "" {
		return 0, err
	}
	if f.json {
		if e := writeJSON(in.stdout, res); e != nil && err == nil {
			err = e
		}
	} else {
		for _, notice := range notices(res, b) {
			fmt.Fprintf(in.stderr, "husk: %s\n", printable(notice))
		}
	}
	if err == nil && res.Error != "" && res.Reason != runtime.ReasonNotStarted {
		err = fmt.Errorf("pass output on: %s", res.Error)
	}
	return exitCode(res), err
}
