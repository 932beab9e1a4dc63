package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
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
	dashed            bool // a "--" ended the command's flags
}

// command is one subcommand. Its options write to variables of the function that made it.
type command struct {
	name, summary string
	usage         []string // after "husk "
	about         string
	examples      []string
	flags         func() []section // made when they are needed: one call uses one command's
	sandboxes     bool             // its words are sandboxes, for completion
	words         int              // how many words come before a program's; -1: any number. For completion
	hidden        bool
	help          *bool // what --help sets
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
	for _, c := range commands {
		c.help = &in.showHelp
	}
	return commands
}

// dispatch has the library set the flags, find the command, and run it. The arguments reach it in the one
// form that getopt gives them, with a "--" before the words, so that it looks for no flags among them.
func (in *invocation) dispatch(ctx context.Context, commands []*command) (code int, err error) {
	g := getopt{options: in.global().options, where: "husk", args: in.args[1:]}
	w, err := g.read()
	if err != nil {
		return 0, err
	}
	app := in.app(commands, &code)
	app.Flags = flags(g.options)
	args := append(append([]string{"husk"}, g.long...), "--")
	if i := indexOf(commands, w.list); i >= 0 {
		args = append(args, w.list[0])
		if w.list, err = in.enter(commands[i], app.Commands[i], w.list[1:]); err != nil {
			return 0, err
		}
	}
	err = app.RunContext(ctx, append(args, w.list...))
	return code, err
}

// app is husk as the library knows it. Its commands have no flags yet: enter adds those of the one that
// is called.
func (in *invocation) app(commands []*command, code *int) *cli.App {
	app := &cli.App{
		Name: "husk", HideHelp: true, HideVersion: true, Compiled: time.Unix(0, 0), // the zero value asks the file system
		Reader: in.stdin, Writer: in.stdout, ErrWriter: in.stderr,
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) (err error) {
			*code, err = in.root(c.Args().Slice(), commands)
			return err
		},
	}
	for _, c := range commands {
		app.Commands = append(app.Commands, &cli.Command{
			Name: c.name, Usage: c.summary, Hidden: c.hidden, HideHelp: true,
			Action: func(cc *cli.Context) (err error) {
				if in.showHelp {
					return writeHelp(in.stdout, c)
				}
				*code, err = c.run(cc.Context, words{cc.Args().Slice(), in.dashed})
				return err
			},
		})
	}
	return app
}

// enter reads the flags of the command that is called, and returns its arguments for the library.
func (in *invocation) enter(c *command, to *cli.Command, args []string) ([]string, error) {
	g := getopt{options: c.options(), where: "husk " + c.name, args: args}
	w, err := g.read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	to.Flags, in.dashed = flags(g.options), w.dashed
	return append(append(g.long, "--"), w.list...), nil
}

func flags(options []*option) []cli.Flag {
	list := make([]cli.Flag, len(options))
	for i, o := range options {
		list[i] = o
	}
	return list
}

// indexOf is the command that the first of the words names, or -1.
func indexOf(commands []*command, list []string) int {
	return slices.IndexFunc(commands, func(c *command) bool { return len(list) > 0 && c.name == list[0] })
}

func find(commands []*command, name string) *command {
	if i := indexOf(commands, []string{name}); i >= 0 {
		return commands[i]
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

// sections are the command's own options and --help.
func (c *command) sections() []section {
	var all []section
	if c.flags != nil {
		all = c.flags()
	}
	if c.help != nil {
		all = append(all, section{"Help", []*option{toggle("help", "this text", c.help).as("h")}})
	}
	return all
}

func (c *command) options() []*option {
	var all []*option
	for _, s := range c.sections() {
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
