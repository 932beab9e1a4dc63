package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/husk-sandbox/husk/runtime"
)

// exitOurs is the exit code of everything that is not the program's: wrong flags and failures of ours.
const exitOurs = 125

// invocation is what one call of husk was given.
type invocation struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(name string) (string, bool)

	options           runtime.Options
	showHelp, version bool
}

// command is one subcommand. Its options write to variables of the function that made it.
type command struct {
	name, summary string
	usage         []string // after "husk "
	about         string
	examples      []string
	sections      []section
	sandboxes     bool // its words are sandboxes, for completion
	words         int  // how many words come before a program's; -1: any number. For completion
	hidden        bool
	run           func(ctx context.Context, words words) (int, error)
}

// run is husk: it reports every error in one line on stderr and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := &invocation{args: args, stdin: stdin, stdout: stdout, stderr: stderr, lookupEnv: os.LookupEnv}
	code, err := in.dispatch(ctx, in.commands())
	switch {
	case err == nil:
		return code
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "husk: interrupted: %s\n", oneLine(err))
		return exitCancelled
	}
	fmt.Fprintf(stderr, "husk: %s\n", oneLine(err))
	return exitOurs
}

// commands are all of them, in the order of the help.
func (in *invocation) commands() []*command {
	commands := []*command{
		runCommand(in), createCommand(in), execCommand(in), stopCommand(in), rmCommand(in), psCommand(in),
		versionCommand(in), completionCommand(in), completeCommand(in),
	}
	help := section{"Help", []*option{toggle("help", "this text", &in.showHelp).as("h")}}
	for _, c := range commands {
		c.sections = append(c.sections, help)
	}
	return commands
}

// dispatch reads the flags, finds the command, and runs it.
func (in *invocation) dispatch(ctx context.Context, commands []*command) (int, error) {
	global := parser{in.global().options, "husk", in.args[1:]}
	w, err := global.parse()
	if err != nil {
		return 0, err
	}
	if len(w.list) > 0 {
		if c := find(commands, w.list[0]); c != nil {
			return in.runOne(ctx, c, w.list[1:])
		}
	}
	return in.root(w.list, commands)
}

func (in *invocation) runOne(ctx context.Context, c *command, args []string) (int, error) {
	p := parser{c.options(), "husk " + c.name, args}
	w, err := p.parse()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", c.name, err)
	case in.showHelp:
		return 0, writeHelp(in.stdout, c)
	}
	return c.run(ctx, w)
}

func find(commands []*command, name string) *command {
	for _, c := range commands {
		if c.name == name {
			return c
		}
	}
	return nil
}

// global are the options before the command.
func (in *invocation) global() section {
	return section{"Options", []*option{
		text("root", "DIR", "state on disk (default /var/lib/husk, or $HUSK_ROOT)", &in.options.Root),
		text("run", "DIR", "sockets and locks (default /run/husk, or $HUSK_RUN)", &in.options.Run),
		text("cgroup-parent", "PATH", "cgroup for all sandboxes, below each hierarchy's root (default /husk, "+
			"or $HUSK_CGROUP_PARENT)", &in.options.CgroupParent),
		toggle("help", "this text", &in.showHelp).as("h"),
		toggle("version", "the version of husk", &in.version).as("v"),
	}}
}

// root is husk without a known command.
func (in *invocation) root(args []string, commands []*command) (int, error) {
	switch {
	case in.version && len(args) == 0:
		return 0, writeVersion(in.stdout, false)
	case len(args) == 2 && args[0] == "help":
		return 0, in.helpFor(args[1], commands)
	case len(args) > 0 && args[0] != "help":
		return 0, unknownCommand(args[0], commands)
	case len(args) == 0 && !in.showHelp:
		return 0, errors.New("no command: see husk --help")
	}
	return 0, writeAppHelp(in.stdout, visible(commands), in.global())
}

func (in *invocation) helpFor(name string, commands []*command) error {
	c := find(commands, name)
	if c == nil {
		return unknownCommand(name, commands)
	}
	return writeHelp(in.stdout, c)
}

// unknownCommand suggests what was probably meant.
func unknownCommand(name string, commands []*command) error {
	var known []string
	for _, c := range visible(commands) {
		known = append(known, c.name)
	}
	return fmt.Errorf("%q is not a command%s: see husk --help", name, didYouMean(name, known))
}

// open opens the runtime with the global options; the environment gives what they do not.
func (in *invocation) open() (*runtime.Runtime, error) {
	o := in.options
	for name, to := range map[string]*string{
		"HUSK_ROOT": &o.Root, "HUSK_RUN": &o.Run, "HUSK_CGROUP_PARENT": &o.CgroupParent,
	} {
		if *to == "" {
			*to, _ = in.lookupEnv(name)
		}
	}
	o.InProcess = true
	return runtime.Open(o)
}

func (c *command) options() []*option {
	var all []*option
	for _, s := range c.sections {
		all = append(all, s.options...)
	}
	return all
}

func visible(commands []*command) []*command {
	var list []*command
	for _, c := range commands {
		if !c.hidden {
			list = append(list, c)
		}
	}
	return list
}

// oneLine is the error on one line: what was joined is separated by "; ", and whatever could move a
// terminal's cursor is escaped.
func oneLine(err error) string {
	return printable(strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "; "))
}

// printable escapes what is not.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\x%02x", r)
		}
	}
	return b.String()
}
