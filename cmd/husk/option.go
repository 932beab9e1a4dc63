package main

import (
	"errors"
	"flag"
	"strconv"

	"github.com/urfave/cli/v2"
)

// option is one flag: what the parser, the help and the completion know about it. It is a cli.Flag of
// its own kind because the library's lists split at commas, or lose bytes that are not UTF-8 on the way
// from one form of a name to the other.
type option struct {
	name   string   // without dashes
	short  string   // one letter, or empty
	arg    string   // what the help calls its value; empty: a switch
	help   string   // what it does, with unit and default
	values []string // what may stand for arg, where that is a short list
	set    func(text string) error
}

var _ cli.Flag = (*option)(nil)

// section is a titled list of options in a help text.
type section struct {
	title   string
	options []*option
}

func text(name, arg, help string, to *string) *option {
	return &option{name: name, arg: arg, help: help, set: func(t string) error { *to = t; return nil }}
}

// list collects every occurrence, in order.
func list(name, arg, help string, to *[]string) *option {
	return &option{name: name, arg: arg, help: help, set: func(t string) error { *to = append(*to, t); return nil }}
}

func toggle(name, help string, to *bool) *option {
	return &option{name: name, help: help, set: func(t string) error {
		on, err := strconv.ParseBool(t)
		if err != nil {
			return errors.New("want true or false")
		}
		*to = on
		return nil
	}}
}

// as adds the one-letter form.
func (o *option) as(short string) *option {
	o.short = short
	return o
}

// oneOf names the values for help and completion; what is accepted is up to the value's parser.
func (o *option) oneOf(values ...string) *option {
	o.values = values
	return o
}

// Apply adds the option to the library's set of flags. The one-letter form is not needed there: getopt
// has made --name of it.
func (o *option) Apply(set *flag.FlagSet) error {
	if o.arg == "" {
		set.BoolFunc(o.name, o.help, o.set)
	} else {
		set.Func(o.name, o.help, o.set)
	}
	return nil
}

// Names is the long name.
func (o *option) Names() []string { return []string{o.name} }

// IsSet is not used: values are read from the destinations.
func (o *option) IsSet() bool { return false }

// String is how the flag is written.
func (o *option) String() string { return "--" + o.name }
