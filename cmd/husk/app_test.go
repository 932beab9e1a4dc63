package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/husk-sandbox/husk/runtime"
)

// TestHelp: the help of every command fits 80 columns and has each flag once, and an example.
func TestHelp(t *testing.T) {
	for _, c := range visible((&invocation{}).commands()) {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"husk", c.name, "--help"}, nil, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("%s --help: exit code %d, %s", c.name, code, stderr.String())
		}
		help := stdout.String()
		for line := range strings.SplitSeq(help, "\n") {
			if utf8.RuneCountInString(line) > 80 || strings.TrimRight(line, " \t") != line {
				t.Errorf("%s --help: %q", c.name, line)
			}
		}
		if !strings.Contains(help, "Examples:\n  ") {
			t.Errorf("%s --help: no example", c.name)
		}
		seen := map[string]bool{}
		for _, o := range c.options() {
			if seen[o.name] || seen[o.short] && o.short != "" {
				t.Errorf("%s: flag %s twice", c.name, o.name)
			}
			seen[o.name], seen[o.short] = true, true
			if !strings.Contains(help, "--"+o.name) {
				t.Errorf("%s --help: no --%s", c.name, o.name)
			}
		}
	}
}

// TestHelpDefaults: the defaults that the help states are the runtime's.
func TestHelpDefaults(t *testing.T) {
	size := func(text string) runtime.Bytes {
		b, err := runtime.ParseBytes(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if runtime.DefaultMemory != size("512m") || runtime.DefaultOutput != size("8m") || runtime.DefaultPIDs != 128 ||
		runtime.DefaultCPUs != 1 || runtime.DefaultTimeout != 5*time.Minute || runtime.DefaultGrace != 10*time.Second {
		t.Error("a default changed: bring the help texts in line")
	}
}

// TestIndependentCalls: no --help leaks from one call to the next, since nothing is global.
func TestIndependentCalls(t *testing.T) {
	for range 2 {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"husk", "ps", "x"}, nil, &stdout, &stderr); code != exitOurs {
			t.Errorf("exit code %d", code)
		}
		run(t.Context(), []string{"husk", "ps", "--help"}, nil, &stdout, &stderr)
	}
}

func TestImpatience(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * 1e9)) }
	for name, c := range map[string]struct {
		times []float64
		last  bool
	}{
		"three at once": {[]float64{0, 1, 2}, true},
		"slow":          {[]float64{0, 1, 2.1}, false},
		"late three":    {[]float64{0, 10, 11, 12}, true},
		"two":           {[]float64{0, 0}, false},
	} {
		var i impatience
		last := false
		for _, s := range c.times {
			i.add(syscall.SIGHUP, at(s))
			last = i.add(syscall.SIGINT, at(s))
		}
		if last != c.last {
			t.Errorf("%s: %v", name, last)
		}
	}
}

func TestCandidates(t *testing.T) {
	in := &invocation{}
	c := completion{commands: visible(in.commands()), global: in.global().options, sandboxes: func() []string {
		return []string{"web", "worker", "db"}
	}}
	for line, want := range map[string]string{
		"ru":                    "run",
		"--ro":                  "--root",
		"--root /x st":          "stop",
		"run --mem":             "--memory",
		"run --net ":            "none host",
		"run --net=h":           "--net=host",
		"run --net = h":         "host",
		"run --net =":           "none host",
		"run --memory 1g --pid": "--pids",
		"run -it --cpu-v":       "--cpu-view",
		"run -- --mem":          "",
		"run snap --mem":        "",
		"run --name ":           "",
		"exec w":                "web worker",
		"exec --json w":         "web worker",
		"exec web w":            "",
		"stop web d":            "db",
		"rm -":                  "--force --json --help",
		"completion ":           "bash zsh fish",
		"nonsense x":            "",
		"":                      "help run create exec stop rm ps version completion",
	} {
		if got := strings.Join(c.candidates(strings.Split(line, " ")), " "); got != want {
			t.Errorf("husk %s: %q, want %q", line, got, want)
		}
	}
}

// TestReportEach: one that did not work is told, the others all the same, and an interrupt is worth more
// than other errors.
func TestReportEach(t *testing.T) {
	wrong, interrupted := errors.New("no\nway"), fmt.Errorf("wait: %w", context.Canceled)
	for _, c := range []struct {
		results []error
		code    int
		stdout  string
		stderr  string
	}{
		{[]error{nil, nil}, 0, "a\nb\n", ""},
		{[]error{wrong, nil}, exitOurs, "b\n", "husk: no; way\n"},
		{[]error{interrupted, wrong}, exitCancelled, "", "husk: wait: context canceled\nhusk: no; way\n"},
		{[]error{wrong, interrupted}, exitCancelled, "", "husk: no; way\nhusk: wait: context canceled\n"},
	} {
		var stdout, stderr bytes.Buffer
		in := &invocation{stdout: &stdout, stderr: &stderr}
		code, err := in.reportEach([]string{"a", "b"}, c.results, false)
		if code != c.code || err != nil || stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%v: exit code %d, %v, printed %q and %q", c.results, code, err, stdout.String(), stderr.String())
		}
	}
}

func TestFilter(t *testing.T) {
	web := runtime.Info{State: runtime.StateStarted, Labels: map[string]string{"job": "42", "x": ""}}
	old := runtime.Info{State: runtime.StateStopped}
	for _, c := range []struct {
		flags    psFlags
		web, old bool
	}{
		{psFlags{}, true, false},
		{psFlags{all: true}, true, true},
		{psFlags{filterTexts: []string{"label=job"}}, true, false},
		{psFlags{filterTexts: []string{"label=job=42", "label=x"}}, true, false},
		{psFlags{filterTexts: []string{"label=job=4"}}, false, false},
		{psFlags{filterTexts: []string{"label=x="}}, true, false},
		{psFlags{filterTexts: []string{"state=stopped"}}, false, true},
		{psFlags{filterTexts: []string{"state=stopped", "state=started"}}, true, true},
	} {
		keep, err := c.flags.filter()
		if err != nil || keep.match(web) != c.web || keep.match(old) != c.old {
			t.Errorf("%+v: %v %v, %v", c.flags, keep.match(web), keep.match(old), err)
		}
	}
	for _, text := range []string{"", "label", "label=", "state=", "state=up", "name=x"} {
		if _, err := (&psFlags{filterTexts: []string{text}}).filter(); err == nil {
			t.Errorf("filter %q: accepted", text)
		}
	}
}

func TestTable(t *testing.T) {
	now := time.Unix(1e9, 0)
	var b strings.Builder
	err := writeTable(&b, []runtime.Info{
		{ID: "abc", State: "started", Snapshot: "host", Scope: "execute", Network: "none", CreatedAt: now.Add(-90 * time.Second)},
		{ID: "de", Name: "web", State: "stopped", Snapshot: "host", Scope: "sandbox", Network: "host", CreatedAt: now.Add(-50 * time.Hour)},
	}, now)
	const want = `ID   NAME  STATE    SNAPSHOT  SCOPE    NETWORK  AGE
abc        started  host      execute  none     1m
de   web   stopped  host      sandbox  host     2d
`
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestQuote(t *testing.T) {
	if got, want := quoteAll([]string{"a", "", "b c", "it's", "x=1", "$HOME"}), `a '' 'b c' 'it'\''s' x=1 '$HOME'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
