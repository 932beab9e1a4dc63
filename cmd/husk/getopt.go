package main

import (
	"fmt"
	"strconv"
	"strings"
)

// getopt reads the options at the beginning of a command line as getopt_long(3) does. The library's
// parser stays the one that sets them; it is given one form only, --name=value, because it reads others
// differently: -memory as --memory, -eA=1 as an option named "eA".
type getopt struct {
	options []*option
	where   string // whose help an error refers to, "husk run"
	args    []string
	long    []string // what was read, as --name=value
}

// read moves options from args to long, until the first word that is not one, and returns the rest. The
// forms are --name VALUE, --name=VALUE, -n VALUE, -nVALUE, and -it for switches, of which the last may
// take a value. A "--" ends the options. The word after an option that needs a value is its value,
// whatever it looks like.
func (g *getopt) read() (words, error) {
	for len(g.args) > 0 {
		arg := g.args[0]
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		g.args = g.args[1:]
		if arg == "--" {
			return words{g.args, true}, nil
		}
		read := g.letters
		if strings.HasPrefix(arg, "--") {
			read = g.name
		}
		if err := read(arg); err != nil {
			return words{}, err
		}
	}
	return words{g.args, false}, nil
}

// name reads --name and --name=VALUE.
func (g *getopt) name(arg string) error {
	flag, value, valued := strings.Cut(arg, "=")
	for _, o := range g.options {
		if flag == "--"+o.name {
			return g.add(o, flag, value, valued)
		}
	}
	return g.unknown(flag)
}

// letters reads -n, -nVALUE, -n=VALUE and -it.
func (g *getopt) letters(arg string) error {
	for i, r := range arg[1:] {
		letter := string(r)
		flag, rest := "-"+letter, arg[1+i+len(letter):]
		o := g.short(letter)
		value, assigned := strings.CutPrefix(rest, "=")
		switch {
		case o == nil && i == 0:
			flag, _, _ = strings.Cut(arg, "=")
			return g.unknown(flag)
		case o == nil:
			return fmt.Errorf("unknown flag %s in %s: see %s --help", flag, quote(arg), g.where)
		case o.arg != "" || assigned:
			return g.add(o, flag, value, rest != "")
		}
		g.long = append(g.long, "--"+o.name)
	}
	return nil
}

func (g *getopt) short(letter string) *option {
	for _, o := range g.options {
		if o.short == letter {
			return o
		}
	}
	return nil
}

// add is an option with its value, which may be the next word. flag is as it was typed.
func (g *getopt) add(o *option, flag, value string, valued bool) error {
	switch {
	case o.arg == "" && !valued:
		value = "true"
	case o.arg == "":
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Errorf("%s: %q: want true or false", flag, value)
		}
	case !valued && len(g.args) == 0:
		return fmt.Errorf("%s: needs a value, %s: see %s --help", flag, o.arg, g.where)
	case !valued:
		value, g.args = g.args[0], g.args[1:]
	}
	g.long = append(g.long, "--"+o.name+"="+value)
	return nil
}

func (g *getopt) unknown(flag string) error {
	var names []string
	for _, o := range g.options {
		names = append(names, "--"+o.name)
	}
	return fmt.Errorf("unknown flag %s%s: see %s --help", flag, didYouMean("--"+strings.TrimLeft(flag, "-"), names), g.where)
}
