package main

import (
	"context"
	"fmt"

	"github.com/husk-sandbox/husk/runtime"
)

func createCommand(in *invocation) *command {
	var sandbox sandboxFlags
	var asJSON bool
	return &command{
		name: "create", summary: "make a sandbox that lasts, and print its id", usage: []string{"create [OPTIONS] [SNAPSHOT]"},
		about: `
The sandbox runs until husk stop, and exists until husk rm. husk exec runs
commands in it; what they leave in the workspace, the next one finds.`,
		examples: []string{
			"husk create --name web --scope sandbox --memory 1g",
			"id=$(husk create) && husk exec $id -- id; husk rm -f $id",
		},
		flags: func() []section {
			return append(sandbox.sections(), section{"Output", []*option{
				toggle("json", "print what husk ps --json does, not only the id", &asJSON),
			}})
		},
		words: 1,
		run: func(ctx context.Context, w words) (int, error) {
			spec, err := in.createRequest(&sandbox, w)
			if err != nil {
				return 0, err
			}
			return 0, in.create(ctx, spec, asJSON)
		},
	}
}

// createRequest is what the command line asks for, or everything that is wrong with it.
func (in *invocation) createRequest(sandbox *sandboxFlags, w words) (runtime.Spec, error) {
	var p problems
	spec := sandbox.spec(&p, in.lookupEnv)
	if err := noMore("create", w, 1); err != nil {
		p = append(p, err)
	} else if len(w.list) == 1 {
		spec.Snapshot = w.list[0]
	}
	return spec, p.join()
}

func (in *invocation) create(ctx context.Context, spec runtime.Spec, asJSON bool) error {
	rt, err := in.open()
	if err != nil {
		return err
	}
	defer rt.Close()
	ctx, stop := cancelOnSignal(ctx)
	defer stop()
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return err
	}
	if !asJSON {
		_, err = fmt.Fprintln(in.stdout, sb.ID())
	} else if info, e := sb.Info(); e != nil {
		err = e
	} else {
		err = writeJSON(in.stdout, info)
	}
	if err != nil { // nobody knows its id
		return fmt.Errorf("%w: sandbox %s was made", err, sb.ID())
	}
	return nil
}
