package main

import (
	"context"

	"github.com/husk-sandbox/husk/runtime"
)

func rmCommand(in *invocation) *command {
	var force, asJSON bool
	return &command{
		name: "rm", summary: "remove sandboxes and their files", usage: []string{"rm [OPTIONS] SANDBOX…"},
		examples: []string{"husk rm web", "husk rm -f $(husk ps -aq --filter label=job=42)"},
		flags: func() []section {
			return []section{{"Options", []*option{
				toggle("force", "also when it is running: everything in it is killed", &force).as("f"),
				toggle("json", "print a list of {sandbox, error} as JSON", &asJSON),
			}}}
		},
		sandboxes: true, words: -1,
		run: func(ctx context.Context, w words) (int, error) {
			refs, err := someSandboxes("rm", w)
			if err != nil {
				return 0, err
			}
			return in.each(ctx, refs, asJSON, func(ctx context.Context, sb *runtime.Sandbox) error {
				return sb.Remove(ctx, force)
			})
		},
	}
}
