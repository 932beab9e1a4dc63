package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

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
	if err != nil {
		fmt.Fprintf(stderr, "husk: %s\n", oneLine(err))
		return exitOurs
	}
	return code
}

// commands are all of them, in the order of the help.
func (in *invocation) commands() []*command {
	return []*command{
		runCommand(in), createCommand(in), execCommand(in), stopCommand(in), rmCommand(in), psCommand(in),
		versionCommand(in), completionCommand(in), completeCommand(in),
	}
}

// dispatch has the library find the command and its flags, and runs it.
func (in *invocation) dispatch(ctx context.Context, commands []*command) (int, error) {
	code := 0
	app := &cli.App{
		Name: "husk", HideHelp: true, HideVersion: true, UseShortOptionHandling: true,
		Writer: io.Discard, ErrWriter: io.Discard,
		Flags:          flags(in.global().options),
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return in.flagError("", err, in.global().options) },
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) (err error) {
			code, err = in.root(c.Args().Slice(), commands)
			return err
		},
	}
	for _, c := range commands {
		app.Commands = append(app.Commands, in.adapt(c, &code))
	}
	return code, app.RunContext(ctx, in.args)
}

// adapt makes the library's form of a command.
func (in *invocation) adapt(c *command, code *int) *cli.Command {
	help := toggle("help", "this text", &in.showHelp).as("h")
	c.sections = append(c.sections, section{"Help", []*option{help}})
	return &cli.Command{
		Name: c.name, Hidden: c.hidden, HideHelp: true, HideHelpCommand: true, Flags: flags(c.options()),
		OnUsageError: func(_ *cli.Context, err error, _ bool) error { return in.flagError(c.name, err, c.options()) },
		Action: func(cc *cli.Context) (err error) {
			if in.showHelp {
				return writeHelp(in.stdout, c)
			}
			*code, err = c.run(cc.Context, in.words(cc.Args().Slice()))
			return err
		},
	}
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
	for _, c := range commands {
		if c.name == name {
			return writeHelp(in.stdout, c)
		}
	}
	return unknownCommand(name, commands)
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

func flags(options []*option) []cli.Flag {
	list := make([]cli.Flag, len(options))
	for i, o := range options {
		list[i] = o
	}
	return list
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

// unknownCommand suggests what was probably meant.
func unknownCommand(name string, commands []*command) error {
	var known []*option
	for _, c := range visible(commands) {
		known = append(known, &option{name: c.name})
	}
	return fmt.Errorf("%q is not a command%s: see husk --help", name, didYouMean("", name, known))
}

// flagError turns the parser's message into ours. The text is the standard library's (package flag),
// which has no typed errors.
func (in *invocation) flagError(command string, err error, options []*option) error {
	where := strings.TrimSpace("husk " + command)
	prefix := command
	if prefix != "" {
		prefix += ": "
	}
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: -"); ok {
		return fmt.Errorf("%sunknown flag %s%s: see %s --help", prefix, in.dashed(name), didYouMean("--", name, options), where)
	}
	if name, ok := strings.CutPrefix(message, "flag needs an argument: -"); ok {
		return fmt.Errorf("%s%s: needs a value: see %s --help", prefix, in.dashed(name), where)
	}
	if rest, ok := strings.CutPrefix(message, "invalid boolean value "); ok {
		if at := strings.LastIndex(rest, " for -"); at >= 0 {
			name, _, _ := strings.Cut(rest[at+len(" for -"):], ":")
			return fmt.Errorf("%s%s: %s: want true or false", prefix, in.dashed(name), rest[:at])
		}
	}
	return fmt.Errorf("%s%w: see %s --help", prefix, err, where)
}

// dashed is a flag as it was typed, which the parser does not tell.
func (in *invocation) dashed(name string) string {
	for _, arg := range in.args {
		if typed, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "-") && strings.TrimLeft(typed, "-") == name {
			return typed
		}
	}
	return "--" + name
}

// didYouMean is the most alike of the known names, or empty when it does not even begin alike: a
// far-fetched hint confuses.
func didYouMean(dashes, name string, known []*option) string {
	hint := strings.TrimLeft(cli.SuggestFlag(flags(known), name, true), "-")
	if hint == "" || name == "" || hint[0] != name[0] {
		return ""
	}
	return " (did you mean " + dashes + hint + "?)"
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
