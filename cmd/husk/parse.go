package main

import (
	"fmt"
	"strings"
)

// parser reads the options at the beginning of a command line.
type parser struct {
	options []*option
	where   string // whose help an error refers to, "husk run"
	args    []string
}

// parse sets what args begin with, until the first word that is not an option, and returns the rest.
// The forms are those of getopt_long(3): --name VALUE, --name=VALUE, -n VALUE, -nVALUE, and -it for
// switches, of which the last may take a value. A "--" ends the options. As with getopt, the word after
// an option that needs a value is its value, whatever it looks like.
func (p *parser) parse() (words, error) {
	for len(p.args) > 0 {
		arg := p.args[0]
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		p.args = p.args[1:]
		if arg == "--" {
			return words{p.args, true}, nil
		}
		read := p.short
		if strings.HasPrefix(arg, "--") {
			read = p.long
		}
		if err := read(arg); err != nil {
			return words{}, err
		}
	}
	return words{p.args, false}, nil
}

func (p *parser) long(arg string) error {
	flag, value, valued := strings.Cut(arg, "=")
	for _, o := range p.options {
		switch {
		case flag != "--"+o.name:
		case valued:
			return p.set(o, flag, value)
		case o.arg == "":
			return p.set(o, flag, "true")
		default:
			return p.setNext(o, flag)
		}
	}
	return p.unknown(flag)
}

func (p *parser) short(arg string) error {
	for i, letter := range arg[1:] {
		flag, rest := "-"+string(letter), arg[1+i+len(string(letter)):]
		o := p.shortOption(string(letter))
		switch {
		case o == nil && i == 0:
			flag, _, _ = strings.Cut(arg, "=")
			return p.unknown(flag)
		case o == nil:
			return fmt.Errorf("unknown flag %s in %s: see %s --help", flag, quote(arg), p.where)
		case o.arg != "" && rest != "":
			return p.set(o, flag, strings.TrimPrefix(rest, "="))
		case o.arg != "":
			return p.setNext(o, flag)
		case strings.HasPrefix(rest, "="):
			return p.set(o, flag, rest[1:])
		}
		if err := p.set(o, flag, "true"); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) shortOption(letter string) *option {
	for _, o := range p.options {
		if o.short == letter {
			return o
		}
	}
	return nil
}

// setNext takes the next word as the value.
func (p *parser) setNext(o *option, flag string) error {
	if len(p.args) == 0 {
		return fmt.Errorf("%s: needs a value, %s: see %s --help", flag, o.arg, p.where)
	}
	value := p.args[0]
	p.args = p.args[1:]
	return p.set(o, flag, value)
}

func (p *parser) set(o *option, flag, value string) error {
	if err := o.set(value); err != nil {
		return fmt.Errorf("%s: %q: %w", flag, value, err)
	}
	return nil
}

func (p *parser) unknown(flag string) error {
	var names []string
	for _, o := range p.options {
		names = append(names, "--"+o.name)
	}
	return fmt.Errorf("unknown flag %s%s: see %s --help", flag, didYouMean("--"+strings.TrimLeft(flag, "-"), names), p.where)
}

// didYouMean is the most alike of the known names, or empty when none is alike.
func didYouMean(name string, known []string) string {
	best, hint := 3, ""
	for _, k := range known {
		if d := distance(name, k); d < best && d < len(strings.TrimLeft(name, "-")) {
			best, hint = d, k
		}
	}
	if hint == "" {
		return ""
	}
	return " (did you mean " + hint + "?)"
}

// distance is how many letters must be put in, left out, changed, or swapped with their neighbour, to
// make b of a.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
