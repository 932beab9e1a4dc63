package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// psFlags say which sandboxes are listed, and how.
type psFlags struct {
	all, json, quiet bool
	filterTexts      []string
}

func psCommand(in *invocation) *command {
	var f psFlags
	return &command{
		name: "ps", summary: "list sandboxes", usage: []string{"ps [OPTIONS]"},
		examples: []string{"husk ps -a", "husk ps --filter label=job=42 --filter state=started", "husk ps --json | jq '.[].id'"},
		flags: func() []section {
			return []section{{"Options", []*option{
				toggle("all", "stopped ones too", &f.all).as("a"),
				toggle("json", "a list as JSON", &f.json),
				toggle("quiet", "ids only", &f.quiet).as("q"),
				list("filter", "WHAT", "label=K, label=K=V or state=S (creating, started, stopping, stopped, error); "+
					"all labels must match, and one of the states; repeatable", &f.filterTexts),
			}}}
		},
		run: func(ctx context.Context, w words) (int, error) {
			keep, err := f.filter()
			if e := noMore("ps", w, 0); e != nil {
				err = e
			}
			if err != nil {
				return 0, err
			}
			return 0, in.ps(ctx, &f, keep)
		},
	}
}

// filter is the parsed --filter.
type filter struct {
	labels map[string]*string // nil: any value
	states []runtime.State
}

func (f *psFlags) filter() (filter, error) {
	var p problems
	keep := filter{labels: map[string]*string{}}
	for _, text := range f.filterTexts {
		kind, rest, _ := strings.Cut(text, "=")
		name, value, valued := strings.Cut(rest, "=")
		switch {
		case kind == "label" && name != "":
			keep.labels[name] = nil
			if valued {
				keep.labels[name] = &value
			}
		case kind == "state" && isState(rest):
			keep.states = append(keep.states, runtime.State(rest))
		default:
			p.add("--filter", fmt.Errorf("%q: want label=K, label=K=V or state=S, with S one of %s", text, stateNames()))
		}
	}
	if !f.all && len(keep.states) == 0 {
		keep.states = slices.DeleteFunc(states(), func(s runtime.State) bool { return s == runtime.StateStopped })
	}
	return keep, p.join()
}

func states() []runtime.State {
	return []runtime.State{
		runtime.StateCreating, runtime.StateStarted, runtime.StateStopping, runtime.StateStopped, runtime.StateError,
	}
}

func isState(text string) bool { return slices.Contains(states(), runtime.State(text)) }

func stateNames() string {
	var names []string
	for _, s := range states() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (k filter) match(info runtime.Info) bool {
	for name, want := range k.labels {
		value, ok := info.Labels[name]
		if !ok || want != nil && *want != value {
			return false
		}
	}
	return len(k.states) == 0 || slices.Contains(k.states, info.State)
}

func (in *invocation) ps(ctx context.Context, f *psFlags, keep filter) error {
	rt, err := in.open()
	if err != nil {
		return err
	}
	defer rt.Close()
	ctx, stop := cancelOnSignal(ctx)
	defer stop()
	infos, err := rt.List(ctx)
	if err != nil {
		return err
	}
	infos = slices.DeleteFunc(infos, func(info runtime.Info) bool { return !keep.match(info) })
	if f.json {
		return writeJSON(in.stdout, append([]runtime.Info{}, infos...))
	}
	if f.quiet {
		return writeIDs(in.stdout, infos)
	}
	return writeTable(in.stdout, infos, time.Now())
}

func writeIDs(w io.Writer, infos []runtime.Info) error {
	for _, info := range infos {
		if _, err := fmt.Fprintln(w, info.ID); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, infos []runtime.Info, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSTATE\tSNAPSHOT\tSCOPE\tNETWORK\tAGE")
	for _, i := range infos {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Name, i.State, i.Snapshot, i.Scope, i.Network, age(now.Sub(i.CreatedAt)))
	}
	return t.Flush()
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
