package main

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/husk-sandbox/husk/netpolicy"
	"github.com/husk-sandbox/husk/runtime"
)

// request is what a command line asks for.
type request struct {
	ref  string
	spec runtime.Spec
	cmd  runtime.Command
}

// parse reads a command line of run, create or exec the way husk does, and stops before the runtime.
func parse(t *testing.T, args ...string) (request, error) {
	t.Helper()
	in := &invocation{
		args: append([]string{"husk"}, args...), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		lookupEnv: func(name string) (string, bool) { return "caller's " + name, name == "HERE" },
	}
	var r request
	var sandbox sandboxFlags
	var process commandFlags
	var exec execFlags
	commands := []*command{
		{name: "run", flags: func() []section { return append(process.sections(), sandbox.sections()...) },
			run: func(_ context.Context, w words) (_ int, err error) {
				r.spec, r.cmd, err = in.runRequest(&sandbox, &process, w)
				return 0, err
			}},
		{name: "create", flags: sandbox.sections, run: func(_ context.Context, w words) (_ int, err error) {
			r.spec, err = in.createRequest(&sandbox, w)
			return 0, err
		}},
		{name: "exec", flags: func() []section { return append(exec.commandFlags.sections(), exec.sections()...) },
			run: func(_ context.Context, w words) (_ int, err error) {
				r.ref, r.cmd, err = in.execRequest(&exec, w)
				return 0, err
			}},
	}
	_, err := in.dispatch(t.Context(), commands)
	return r, err
}

// TestPlainRun: without flags, the request is the zero Spec and Command: every default is the runtime's.
func TestPlainRun(t *testing.T) {
	r, err := parse(t, "run", "--", "true")
	want := request{cmd: runtime.Command{Args: []string{"true"}}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, %v; want %+v", r, err, want)
	}
}

func TestSpec(t *testing.T) {
	r, err := parse(t, "create", "--name", "web", "--label", "a=1", "--label", "b=x=y", "--label=c", "--net", "host",
		"--memory", "1.5g", "--cpus", "0.5", "--cpuset", "0-1", "--pids", "64", "--oom-kill", "group", "--cpu-view", "host",
		"-u", "7:8", "--hostname", "h", "-w", "/x", "-e", "A=1,2", "--env", "HERE", "--bind", "/a:/b", "--bind",
		"/c:/d:rw,host-root", "--tmpfs", "/t", "--scope", "sandbox", "--seccomp", "strict", "--allow-downgrade", "swap",
		"debian:12")
	want := runtime.Spec{
		Name: "web", Labels: map[string]string{"a": "1", "b": "x=y", "c": ""}, Snapshot: "debian:12",
		Scope: runtime.ScopeSandbox, Network: netpolicy.Host(), User: "7:8", Hostname: "h", WorkDir: "/x",
		Env: []string{"A=1,2", "HERE=caller's HERE"},
		Binds: []runtime.Bind{
			{Source: "/a", Destination: "/b", ReadOnly: true}, {Source: "/c", Destination: "/d", AsHostRoot: true},
		},
		Tmpfs:   []runtime.Tmpfs{{Destination: "/t"}},
		Limits:  runtime.Limits{Memory: 1536 * runtime.MiB, CPUs: 0.5, CPUSet: "0-1", PIDs: 64, OOMGroup: true},
		CPUView: runtime.CPUViewHost, Seccomp: "strict", AllowDowngrade: []string{"swap"},
	}
	if err != nil || !reflect.DeepEqual(r.spec, want) {
		t.Errorf("got  %+v, %v\nwant %+v", r.spec, err, want)
	}
}

func TestCommand(t *testing.T) {
	r, err := parse(t, "exec", "--timeout", "90", "--cpu-time", "1m", "--output", "1m", "--output-kill", "--rlimit",
		"nofile=4096", "--rlimit=fsize=10m:unlimited", "--trace-denials", "--memory", "64m", "--cpus", "unlimited",
		"--pids", "5", "--user", "root", "--workdir", "/", "-e", "A=", "--seccomp", "unconfined", "--json", "-i",
		"web", "sh", "-c", "echo -- $0", "--json")
	want := request{ref: "web", cmd: runtime.Command{
		Args: []string{"sh", "-c", "echo -- $0", "--json"}, Env: []string{"A="}, Dir: "/", User: "root",
		Timeout: 90 * time.Second, CPUTime: time.Minute, Output: runtime.MiB, OutputKill: true,
		Limits: runtime.Limits{Memory: 64 * runtime.MiB, CPUs: runtime.Unlimited, PIDs: 5},
		Rlimits: []runtime.Rlimit{
			{Name: "nofile", Soft: 4096, Hard: 4096}, {Name: "fsize", Soft: 10 << 20, Hard: runtime.Unlimited},
		},
		Seccomp: "unconfined", TraceDenials: true,
	}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v, %v\nwant %+v", r, err, want)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string]string{
		"run -- a":                     " a",
		"run -- a -- b":                " a -- b",
		"run -- -x":                    " -x",
		"run -- help":                  " help",
		"run -- h":                     " h",
		"run snap -- a -b":             "snap a -b",
		"run snap a -b":                "snap a -b",
		"run snap a -- b":              "snap a -- b",
		"run snap help":                "snap help",
		"run -i -- a":                  " a",
		"run --name -- -- a":           " a",
		"run --json=false -- a --json": " a --json",
		"run -- a --help":              " a --help",
		"exec box a -t":                "box a -t",
		"exec box -- -t":               "box -t",
		"exec -i box a -- b":           "box a -- b",
		"exec -- box a":                "error: exec: no sandbox",
		"exec box":                     "error: exec: no command: write husk exec SANDBOX -- COMMAND",
		"exec box --":                  "error: exec: no command",
		"exec box -i a":                "error: exec: -i: flags go before the sandbox",
		"exec":                         "error: exec: no sandbox",
		"run":                          "error: run: no command: write husk run -- COMMAND",
		"run --":                       "error: run: no command",
		"run snap --":                  "error: run: no command",
		"run snap":                     "error: run: no command: write husk run -- snap to run it in base host, or husk run snap -- COMMAND",
		"run snap --memory 1g -- a":    "error: run: --memory: flags go before the snapshot",
		"run python3 -c 1":             "error: run: -c: flags go before the snapshot; if python3 is the command, write husk run -- python3 -c 1",
		"run --nmae x -- a":            "error: run: unknown flag --nmae (did you mean --name?): see husk run --help",
		"run -x -- a":                  "error: run: unknown flag -x: see husk run --help",
		"run -itx -- a":                "error: run: unknown flag -x in -itx: see husk run --help",
		"run -memory 1g -- a":          "error: run: unknown flag -memory (did you mean --memory?)",
		"run -zzz -- a":                "error: run: unknown flag -zzz: see husk run --help",
		"run -inope -- a":              "error: run: unknown flag -n in -inope",
		"run - a":                      "- a",
		"run --x=y":                    "error: run: unknown flag --x: see",
		"run --memory=":                "error: run: no command",
		"run -w":                       "error: run: -w: needs a value, DIR: see husk run --help",
		"run --name":                   "error: run: --name: needs a value, NAME: see husk run --help",
		"run --json=maybe -- a":        `error: run: --json: "maybe": want true or false`,
		"create a b":                   "error: create: unexpected word b: see husk create --help",
		"create a --name=b":            "error: create: --name=b: flags go before the first word",
		"rnu":                          `error: "rnu" is not a command (did you mean run?): see husk --help`,
		"--rot x run":                  "error: unknown flag --rot (did you mean --root?): see husk --help",
	} {
		r, err := parse(t, strings.Fields(line)...)
		got := r.ref + r.spec.Snapshot + " " + strings.Join(r.cmd.Args, " ")
		if err != nil {
			got = "error: " + oneLine(err)
		}
		if got != want && !(err != nil && strings.HasPrefix(got, want)) {
			t.Errorf("husk %s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

// TestWrongValues: each bad value is an error that names its flag and the value.
func TestWrongValues(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"--memory", "lots", "want a number with a unit"},
		{"--memory", "512", "a number without a unit"},
		{"--memory", "0", "write unlimited"},
		{"--memory", "0m", "write unlimited"},
		{"--memory", "-1", "want a number with a unit"},
		{"--cpus", "0", "write unlimited"},
		{"--cpus", "-1", "or unlimited"},
		{"--cpus", "1e3", "or unlimited"},
		{"--cpus", "nan", "or unlimited"},
		{"--cpus", "0x1", "or unlimited"},
		{"--cpus", "1.2.3", "or unlimited"},
		{"--pids", "0", "write unlimited"},
		{"--pids", "-1", "want a whole number, or unlimited"},
		{"--pids", "9999999999", "want a whole number"},
		{"--timeout", "0", "write none"},
		{"--timeout", "0s", "write none"},
		{"--timeout", "-5", "write none"},
		{"--timeout", "-5m", "write none"},
		{"--timeout", "0.0000000001", "write none"},
		{"--timeout", "soon", "want seconds"},
		{"--timeout", "unlimited", "want seconds"},
		{"--timeout", "99999999999999", "too long"},
		{"--cpu-time", "0", "write none"},
		{"--output", "0", "write unlimited"},
		{"--output", "8", "without a unit"},
		{"--rlimit", "nofile", "want NAME=SOFT[:HARD]"},
		{"--rlimit", "nofile=", "want NAME=SOFT[:HARD]"},
		{"--rlimit", "=1", "want NAME=SOFT[:HARD]"},
		{"--rlimit", "nofile=4k", "want a whole number"},
		{"--rlimit", "nofile=1:", "want a whole number"},
		{"--rlimit", "nofile=-1", "want a whole number"},
		{"--rlimit", "nofile=1:2:3", "want a whole number"},
		{"--rlimit", "fsize=1q", "want a number with a unit"},
		{"--rlimit", "cpu=99999999999999999999", "too large"},
		{"--net", "all", "use none or host"},
		{"--net", "allow:example.org", "not available in this version"},
		{"--scope", "host", "want execute or sandbox"},
		{"--cpu-view", "x", "want quota or host"},
		{"--oom-kill", "x", "want process or group"},
		{"--label", "=v", "empty name"},
		{"--env", "=v", "empty name"},
		{"--env", "", "empty name"},
		{"--env", "GONE", "not set here"},
		{"--env", "A B=c", "a space in the name"},
		{"--bind", "/a", "want SRC:DST"},
		{"--bind", ":/a", "want SRC:DST"},
		{"--bind", "/a:", "want SRC:DST"},
		{"--bind", "/a:/b:x", "want ro, rw"},
		{"--bind", "/a:/b:", "want ro, rw"},
		{"--bind", "/a:/b:ro,rw", "both ro and rw"},
		{"--bind", "/a:/b:host-root", "goes with rw"},
		{"--bind", "/a:/b:rw:x", "want SRC:DST"},
		{"--tmpfs", ":size=1m", "want DST"},
		{"--tmpfs", "/t:size=0", "always has a size"},
		{"--tmpfs", "/t:size=unlimited", "always has a size"},
		{"--tmpfs", "/t:mode=9", "want octal"},
		{"--tmpfs", "/t:mode=0", "want octal"},
		{"--tmpfs", "/t:inodes=0", "above 0"},
		{"--tmpfs", "/t:exec=no", "want size=64m"},
		{"--tmpfs", "/t:", "want size=64m"},
		{"--seccomp", "/nowhere", "no such profile or file"},
		{"--seccomp", "/dev/null", "not a seccomp profile"},
		{"--env-file", "/nowhere", "no such file"},
		{"--tty", "", "standard output is not a terminal"},
	} {
		arg := c.flag + "=" + c.value
		if c.flag == "--tty" {
			arg = c.flag
		}
		_, err := parse(t, "run", arg, "--", "true")
		if err == nil {
			t.Errorf("%s: accepted", arg)
			continue
		}
		line := oneLine(err)
		names := c.flag == "--env" || strings.Contains(line, c.value) // a variable's value is a secret
		if !strings.HasPrefix(line, c.flag+": ") || !names || !strings.Contains(line, c.want) {
			t.Errorf("%s: error %q, want flag, value and %q", arg, line, c.want)
		}
	}
}

// TestAllProblems: a command line with several faults is told all of them.
func TestAllProblems(t *testing.T) {
	_, err := parse(t, "run", "--memory", "x", "--timeout", "0", "--bind", "y", "--net", "z")
	if err == nil {
		t.Fatal("accepted")
	}
	line := oneLine(err)
	for _, part := range []string{"--memory: ", "--timeout: ", "--bind: ", "--net: ", "no command"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not say %q", line, part)
		}
	}
}

// TestFlagForms: the forms of getopt_long(3).
func TestFlagForms(t *testing.T) {
	for line, want := range map[string][]string{
		"-e A=1 --env B=2 --env=C=3 -eD=4 -e=E=5": {"A=1", "B=2", "C=3", "D=4", "E=5"},
		"-ie A=1":           {"A=1"},
		"-ieA=1":            {"A=1"},
		"--env -e=1":        {"-e=1"},
		"--json -i=false":   nil,
		"-i=true -e A=--":   {"A=--"},
		"--env=A=1 --stdin": {"A=1"},
	} {
		args := append(append([]string{"run"}, strings.Fields(line)...), "--", "true")
		r, err := parse(t, args...)
		if err != nil || !reflect.DeepEqual(r.spec.Env, want) || len(r.cmd.Args) != 1 {
			t.Errorf("%s: %q, %v; want %q", line, r.spec.Env, err, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"run", "create", "rm", "ps", "version"}
	for name, want := range map[string]string{
		"rnu": "run", "crate": "create", "ceate": "create", "craete": "create", "rmm": "rm", "vresion": "version",
		"x": "", "pull": "", "images": "", "": "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got := didYouMean(name, known); got != want {
			t.Errorf("%q:%s, want%s", name, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond, "5m": 5 * time.Minute,
		"1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "none": runtime.NoTimeout, "": 0,
	} {
		var p problems
		if got := p.duration("--timeout", text, runtime.NoTimeout); got != want || p.join() != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, p.join(), want)
		}
	}
}

// TestTTYTimeout: a session at a terminal has no time limit unless one is named.
func TestTTYTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"": runtime.NoTimeout, "5": 5 * time.Second} {
		var p problems
		f := commandFlags{tty: true, timeout: text}
		if c := f.command(&p, []string{"sh"}); c.Timeout != want {
			t.Errorf("--tty --timeout %q: %v, want %v", text, c.Timeout, want)
		}
	}
}

func TestBind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for text, want := range map[string]runtime.Bind{
		"/a:/b":              {Source: "/a", Destination: "/b", ReadOnly: true},
		"/a:/b:ro":           {Source: "/a", Destination: "/b", ReadOnly: true},
		"/a:/b:rw":           {Source: "/a", Destination: "/b"},
		`/a\:b:/c\:d:rw`:     {Source: "/a:b", Destination: "/c:d"},
		`/a\\:/b`:            {Source: `/a\`, Destination: "/b", ReadOnly: true},
		`/a\n:/b`:            {Source: `/a\n`, Destination: "/b", ReadOnly: true},
		".:/b":               {Source: dir, Destination: "/b", ReadOnly: true},
		"x/../y:/b":          {Source: dir + "/y", Destination: "/b", ReadOnly: true},
		"/a:/b:host-root,rw": {Source: "/a", Destination: "/b", AsHostRoot: true},
	} {
		if got, err := parseBind(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestTmpfs(t *testing.T) {
	got, err := parseTmpfs("/t:size=1m,mode=0700,inodes=9,exec")
	want := runtime.Tmpfs{Destination: "/t", Size: runtime.MiB, Inodes: 9, Mode: 0o700, Exec: true}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
