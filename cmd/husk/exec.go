package main

import (
	"context"

	"github.com/husk-sandbox/husk/runtime"
)

// execFlags are those of an execution in a sandbox that exists.
type execFlags struct {
	commandFlags
	limits  limitFlags
	process processFlags
	seccomp string
}

func execCommand(in *invocation) *command {
	var f execFlags
	return &command{
		name: "exec", summary: "run a command in a sandbox",
		usage: []string{"exec [OPTIONS] SANDBOX -- COMMAND [ARG…]", "exec [OPTIONS] SANDBOX COMMAND [ARG…]"},
		about: `
SANDBOX is an id or a name. Options go before it; those after it belong to the
command. Exit codes and signals are those of husk run (husk run --help).`,
		examples: []string{
			"husk exec web -- python3 -m http.server 8080",
			"husk exec -it web -- bash",
			"husk exec --timeout 30 --memory 128m web -- ./test.sh",
		},
		flags:     func() []section { return append(f.commandFlags.sections(), f.sections()...) },
		sandboxes: true, words: 1,
		run: func(ctx context.Context, w words) (int, error) { return in.exec(ctx, &f, w) },
	}
}

func (f *execFlags) sections() []section {
	const same = "(default the sandbox's; not above it)"
	return []section{
		{"Limits of this execution within the sandbox's", f.limits.options(same, same, same)},
		{"Process", f.process.options("sandbox's", "the sandbox's")},
		{"Security", []*option{seccompOption(&f.seccomp, "the sandbox's")}},
	}
}

func (in *invocation) exec(ctx context.Context, f *execFlags, w words) (int, error) {
	ref, c, err := in.execRequest(f, w)
	if err != nil {
		return 0, err
	}
	rt, err := in.open()
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	sb, err := rt.Sandbox(ref)
	if err != nil {
		return 0, err
	}
	defer sb.Close()
	res, err := in.attached(ctx, &f.commandFlags, c, sb.Execute)
	return in.report(&f.commandFlags, res, err, boundsOf(c, c.Limits))
}

// execRequest is what the command line asks for, or everything that is wrong with it.
func (in *invocation) execRequest(f *execFlags, w words) (ref string, c runtime.Command, err error) {
	var p problems
	ref, args, err := execWords(w)
	if err != nil {
		p = append(p, err)
	}
	_, err = in.openTerminal(&f.commandFlags)
	p.add("--tty", err)
	c = f.command(&p, args)
	c.Limits = f.limits.limits(&p)
	c.User, c.Dir = f.process.user, f.process.workDir
	c.Env = p.environment(f.process.envFiles, f.process.env, in.lookupEnv)
	c.Seccomp = p.seccomp("--seccomp", f.seccomp)
	return ref, c, p.join()
}
