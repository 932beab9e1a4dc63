package main

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// Columns of a help text.
const (
	helpWidth  = 79
	helpIndent = 26
)

// helpTemplate lays out a helpPage; trim and wrap are the library's.
const helpTemplate = `{{.Title}}

Usage:
{{range .Usage}}  husk {{.}}
{{end}}{{with .About}}
{{trim .}}
{{end}}{{with .Examples}}
Examples:
{{range .}}  {{.}}
{{end}}{{end}}{{range .Sections}}
{{.Title}}:
{{range .Rows}}{{.Label}}{{wrap .Text indent}}
{{end}}{{end}}{{with .See}}
{{.}}
{{end}}`

// helpPage is the help of husk or of one command. Its fields are exported for the template.
type helpPage struct {
	Title, About, See string
	Usage, Examples   []string
	Sections          []helpSection
}

type helpSection struct {
	Title string
	Rows  []helpRow
}

// helpRow is a label that ends where the column of texts begins, and its text.
type helpRow struct{ Label, Text string }

// writeHelp prints a command's help.
func writeHelp(w io.Writer, c *command) error {
	p := helpPage{Title: "husk " + c.name + ": " + c.summary, Usage: c.usage, About: c.about, Examples: c.examples}
	p.add(c.sections()...)
	return p.write(w)
}

// writeAppHelp prints the help of husk itself.
func writeAppHelp(w io.Writer, commands []*command, global section) error {
	p := helpPage{
		Title: "husk runs untrusted programs in sandboxes.", Usage: []string{"[OPTIONS] COMMAND …"},
		Examples: []string{
			"husk run -- python3 -c 'print(6*7)'",
			"husk run --memory 256m --timeout 30 --bind .:/src -w /src -- make test",
		},
		See: "See husk COMMAND --help for each command.",
	}
	list := helpSection{Title: "Commands"}
	for _, c := range commands {
		list.Rows = append(list.Rows, helpRow{pad("  " + c.name), c.summary})
	}
	p.Sections = append(p.Sections, list)
	p.add(global)
	return p.write(w)
}

func (p *helpPage) add(sections ...section) {
	for _, s := range sections {
		h := helpSection{Title: s.title}
		for _, o := range s.options {
			h.Rows = append(h.Rows, helpRow{pad(o.label()), o.help})
		}
		p.Sections = append(p.Sections, h)
	}
}

// write has the library lay the page out. It reports no error, so that it prints into memory first.
func (p *helpPage) write(w io.Writer) error {
	var text strings.Builder
	cli.HelpPrinterCustom(&text, helpTemplate, p, map[string]any{
		"wrapAt": func() int { return helpWidth },
		"indent": func() int { return helpIndent },
	})
	_, err := io.WriteString(w, text.String())
	return err
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

// pad fills up to the column where texts begin, on the next line where the label is too long.
func pad(label string) string {
	if n := len([]rune(label)); n <= helpIndent-2 {
		return label + strings.Repeat(" ", helpIndent-n)
	}
	return label + "\n" + strings.Repeat(" ", helpIndent)
}
