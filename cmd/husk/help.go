package main

import (
	"io"
	"strings"
)

// Columns of a help text.
const (
	helpWidth  = 79
	helpIndent = 26
)

// page lays out help texts.
type page struct{ strings.Builder }

// writeHelp prints a command's help.
func writeHelp(w io.Writer, c *command) error {
	var p page
	p.WriteString("husk " + c.name + ": " + c.summary + "\n\nUsage:\n")
	for _, usage := range c.usage {
		p.WriteString("  husk " + usage + "\n")
	}
	if c.about != "" {
		p.WriteString("\n" + strings.TrimSpace(c.about) + "\n")
	}
	p.examples(c.examples)
	p.sections(c.sections)
	_, err := io.WriteString(w, p.String())
	return err
}

// writeAppHelp prints the help of husk itself.
func writeAppHelp(w io.Writer, commands []*command, global section) error {
	var p page
	p.WriteString("husk runs untrusted programs in sandboxes.\n\nUsage:\n  husk [OPTIONS] COMMAND …\n")
	p.examples([]string{
		"husk run -- python3 -c 'print(6*7)'",
		"husk run --memory 256m --timeout 30 --bind .:/src -w /src -- make test",
	})
	p.WriteString("\nCommands:\n")
	for _, c := range commands {
		p.row("  "+c.name, c.summary)
	}
	p.sections([]section{global})
	p.WriteString("\nSee husk COMMAND --help for each command.\n")
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) examples(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.WriteString("\nExamples:\n")
	for _, line := range lines {
		p.WriteString("  " + line + "\n")
	}
}

func (p *page) sections(sections []section) {
	for _, s := range sections {
		p.WriteString("\n" + s.title + ":\n")
		for _, o := range s.options {
			p.row(o.label(), o.help)
		}
	}
}

// label is the option as the help shows it, such as "  -e, --env NAME=VALUE".
func (o *option) label() string {
	label := "      --" + o.name
	if o.short != "" {
		label = "  -" + o.short + ", --" + o.name
	}
	if o.arg != "" {
		label += " " + o.arg
	}
	return label
}

// row prints a label and, beside or below it, its text.
func (p *page) row(label, text string) {
	p.WriteString(label)
	column := len([]rune(label))
	if column > helpIndent-2 {
		p.WriteByte('\n')
		column = 0
	}
	for _, line := range wrap(text, helpWidth-helpIndent) {
		p.WriteString(strings.Repeat(" ", helpIndent-column) + line + "\n")
		column = 0
	}
}

// wrap breaks text at spaces into lines of at most width characters; a longer word stays whole.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
