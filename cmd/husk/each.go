package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/husk-sandbox/husk/runtime"
)

// done is how a verb ended for one of several sandboxes.
type done struct {
	Sandbox string  `json:"sandbox"`
	Error   *string `json:"error"`
}

// atOnce is how many sandboxes are worked on at the same time; each takes a few descriptors.
const atOnce = 32

// each does something to several sandboxes, many at the same time. It prints, in order, the name of each for
// which it worked, and one line for each for which it did not; then the exit code is 125, or 130 where it
// was interrupted.
func (in *invocation) each(ctx context.Context, refs []string, asJSON bool, do func(context.Context, *runtime.Sandbox) error) (int, error) {
	rt, err := in.open()
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	ctx, stop := cancelOnSignal(ctx)
	defer stop()
	results := make([]error, len(refs))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, ref := range refs {
		slots <- struct{}{}
		all.Go(func() {
			results[i] = withSandbox(ctx, rt, ref, do)
			<-slots
		})
	}
	all.Wait()
	return in.reportEach(refs, results, asJSON)
}

func withSandbox(ctx context.Context, rt *runtime.Runtime, ref string, do func(context.Context, *runtime.Sandbox) error) error {
	sb, err := rt.Sandbox(ref)
	if err != nil {
		return err
	}
	return do(ctx, sb)
}

func (in *invocation) reportEach(refs []string, results []error, asJSON bool) (int, error) {
	code := 0
	list := make([]done, len(refs))
	for i, err := range results {
		list[i].Sandbox = refs[i]
		if err != nil {
			if code = max(code, exitOurs); errors.Is(err, context.Canceled) {
				code = exitCancelled
			}
			line := oneLine(err)
			list[i].Error = &line
			fmt.Fprintf(in.stderr, "husk: %s\n", line)
		} else if !asJSON {
			fmt.Fprintln(in.stdout, refs[i])
		}
	}
	if asJSON {
		return code, writeJSON(in.stdout, list)
	}
	return code, nil
}
