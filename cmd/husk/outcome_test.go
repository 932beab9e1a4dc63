package main

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/husk-sandbox/husk/images"
	"github.com/husk-sandbox/husk/runtime"
)

func TestOutcome(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	b := boundsOf(runtime.Command{CPUTime: 2 * time.Second}, sandboxLimits(runtime.Limits{}))
	for _, c := range []struct {
		result runtime.Result
		code   int
		says   []string
	}{
		{runtime.Result{Reason: runtime.ReasonExited}, 0, nil},
		{runtime.Result{Reason: runtime.ReasonExited, ExitCode: 3}, 3, nil},
		{runtime.Result{Reason: runtime.ReasonSignalled, ExitCode: 139, Signal: "SIGSEGV"}, 139, nil},
		{runtime.Result{Reason: runtime.ReasonTimeout, ExitCode: 137}, 124, []string{"timed out after 5m0s (--timeout)"}},
		{runtime.Result{Reason: runtime.ReasonCPUTimeout, ExitCode: 137}, 124, []string{"used up its CPU time of 2s (--cpu-time)"}},
		{runtime.Result{Reason: runtime.ReasonOutputLimit, ExitCode: 137}, 124, []string{"ended: wrote more than 8MiB (--output)"}},
		{runtime.Result{Reason: runtime.ReasonKilled, ExitCode: 137}, 137, []string{"killed: the sandbox was stopped"}},
		{runtime.Result{Reason: runtime.ReasonCancelled, ExitCode: 137}, 130, []string{"killed: interrupted"}},
		{runtime.Result{Reason: runtime.ReasonNotStarted, ExitCode: 127, Error: "nope: not found in PATH"}, 127,
			[]string{"nope: not found in PATH"}},
		{runtime.Result{Reason: runtime.ReasonOOM, ExitCode: 137, OOMKills: n(1)}, 137,
			[]string{"out of memory: 1 process killed at the limit of 512MiB (--memory)"}},
		{runtime.Result{Reason: runtime.ReasonOOM}, 137,
			[]string{"out of memory: 1 process killed at the limit of 512MiB (--memory)"}},
		{runtime.Result{Reason: runtime.ReasonExited, OOMKills: n(2)}, 0,
			[]string{"out of memory: 2 processes killed at the limit of 512MiB (--memory)"}},
		{runtime.Result{Reason: runtime.ReasonExited, PIDsLimitHits: n(2), DiskFull: []string{"/tmp"}}, 0, nil},
		{runtime.Result{Reason: runtime.ReasonExited, ExitCode: 1, PIDsLimitHits: n(2), DiskFull: []string{"/tmp", "/run"}}, 1,
			[]string{"2 new processes refused at the limit of 128 (--pids)",
				"no space left on /tmp, /run (--tmpfs DST:size=… makes it larger)"}},
		{runtime.Result{Reason: runtime.ReasonExited, Denials: []runtime.Denial{{Name: "bpf", Count: 2}, {Name: "keyctl", Count: 1}}}, 0,
			[]string{"refused system calls: bpf (2), keyctl (1)"}},
	} {
		if code := exitCode(c.result); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.result.Reason, code, c.code)
		}
		if says := notices(c.result, b); !reflect.DeepEqual(says, c.says) {
			t.Errorf("%s: says %q, want %q", c.result.Reason, says, c.says)
		}
	}
}

// TestUnknownLimits: exec does not know the sandbox's limits, and does not guess.
func TestUnknownLimits(t *testing.T) {
	n := int64(1)
	says := notices(runtime.Result{Reason: runtime.ReasonOOM, OOMKills: &n, PIDsLimitHits: &n}, boundsOf(runtime.Command{}, runtime.Limits{}))
	want := []string{"out of memory: 1 process killed at the limit (--memory)", "1 new process refused at the limit (--pids)"}
	if !reflect.DeepEqual(says, want) {
		t.Errorf("says %q, want %q", says, want)
	}
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		json           bool
		res            runtime.Result
		err            error
		code           int
		stdout, stderr string
		fails          string
	}{
		"setup error": {err: errors.New("mount: no"), fails: "mount: no"},
		"result and error": {res: runtime.Result{Reason: runtime.ReasonTimeout}, err: errors.New("clean up: no"), code: 124,
			stderr: "husk: timed out after 5m0s (--timeout)\n", fails: "clean up: no"},
		"json": {json: true, res: runtime.Result{Reason: runtime.ReasonTimeout}, code: 124, stdout: `"reason":"timeout"`},
		"lost": {res: runtime.Result{Reason: runtime.ReasonExited, Error: "no space"}, fails: "pass output on: no space"},
		"a program's escape": {res: runtime.Result{Reason: runtime.ReasonNotStarted, ExitCode: 127, Error: "\x1b[2J\n: not found"},
			code: 127, stderr: `husk: \x1b[2J\x0a: not found` + "\n"},
	} {
		var stdout, stderr bytes.Buffer
		in := &invocation{stdout: &stdout, stderr: &stderr}
		code, err := in.report(&commandFlags{json: c.json}, c.res, c.err, boundsOf(runtime.Command{}, runtime.Limits{}))
		if (err == nil) != (c.fails == "") || err != nil && err.Error() != c.fails || code != c.code {
			t.Errorf("%s: %d, %v; want %d, %q", name, code, err, c.code, c.fails)
		}
		if !strings.Contains(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 || stderr.String() != c.stderr {
			t.Errorf("%s: printed %q and %q", name, stdout.String(), stderr.String())
		}
	}
}

// TestSnapshotHint: who forgets the -- is told, who did not is not.
func TestSnapshotHint(t *testing.T) {
	missing := images.ErrNotFound
	for _, c := range []struct {
		words words
		err   error
		want  string
	}{
		{words{list: []string{"echo", "a b"}}, missing, ": if echo is the command, write husk run -- echo 'a b'"},
		{words{list: []string{"snap", "--", "a"}}, missing, ""},
		{words{list: []string{"echo", "a"}, dashed: true}, missing, ""},
		{words{list: []string{"echo", "a"}}, errors.New("other"), ""},
	} {
		if got := snapshotHint(c.err, c.words); got.Error() != c.err.Error()+c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %q, want …%q", c.words, got, c.want)
		}
	}
	if snapshotHint(nil, words{list: []string{"a", "b"}}) != nil {
		t.Error("an error from none")
	}
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("a\r"), errors.New("b\x1b[1m\x00é…"))
	if got, want := oneLine(err), `a\x0d; b\x1b[1m\x00é…`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
