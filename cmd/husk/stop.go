package main

import (
	"context"
	"fmt"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

func stopCommand(in *invocation) *command {
	var grace string
	var asJSON bool
	return &command{
		name: "stop", summary: "end everything in sandboxes, and keep their record",
		usage: []string{"stop [OPTIONS] SANDBOX…"},
		about: `
Every execution gets SIGTERM, and SIGKILL after the grace. Stopping a stopped
sandbox is no error. The names of those stopped are printed.`,
		examples: []string{"husk stop web", "husk stop --grace 2 $(husk ps -q)"},
		flags: func() []section {
			return []section{{"Options", []*option{
				text("grace", "TIME", "time between SIGTERM and SIGKILL: seconds, or 1m30s; 0 kills at once (default 10s)", &grace),
				toggle("json", "print a list of {sandbox, error} as JSON", &asJSON),
			}}}
		},
		sandboxes: true, words: -1,
		run: func(ctx context.Context, w words) (int, error) {
			var p problems
			wait := parseGrace(&p, grace)
			refs, err := someSandboxes("stop", w)
			if err != nil {
				p = append(p, err)
			}
			if err := p.join(); err != nil {
				return 0, err
			}
			return in.each(ctx, refs, asJSON, func(ctx context.Context, sb *runtime.Sandbox) error {
				return sb.StopWithin(ctx, wait)
			})
		},
	}
}

// parseGrace differs from other durations: zero means at once.
func parseGrace(p *problems, text string) time.Duration {
	if text == "" {
		return runtime.DefaultGrace
	}
	d, err := parseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q: negative; 0 kills at once", text)
	}
	p.add("--grace", err)
	return d
}
