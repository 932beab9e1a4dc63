package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// B5: 128+n for a signal, the program's own code otherwise, and a field beside it that says which.
func TestExitCode(t *testing.T) {
	id := create(t)
	type test struct {
		args           []string
		code           int
		reason, signal string
	}
	for _, c := range fewer(4, []test{
		{[]string{"sh", "-c", "exit 255"}, 255, "exited", ""},
		{[]string{"sh", "-c", "kill -SEGV $$"}, 139, "signalled", "SIGSEGV"},
		{[]string{"sh", "-c", "kill -KILL $$"}, 137, "signalled", "SIGKILL"},
		{[]string{"python3", "-c", "import os; os.kill(os.getpid(), 40)"}, 168, "signalled", "SIG40"},
		{[]string{"true"}, 0, "exited", ""},
		{[]string{"sh", "-c", "exit 1"}, 1, "exited", ""},
		{[]string{"sh", "-c", "exit 256"}, 0, "exited", ""},
		{[]string{"bash", "-c", "exit -1"}, 255, "exited", ""},
		{[]string{"sh", "-c", "exit 124"}, 124, "exited", ""},
		{[]string{"sh", "-c", "exit 125"}, 125, "exited", ""},
		{[]string{"sh", "-c", "exit 137"}, 137, "exited", ""},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143, "signalled", "SIGTERM"},
		{[]string{"sh", "-c", "kill -ABRT $$"}, 134, "signalled", "SIGABRT"},
		// the shell survives its child's signal and says so itself
		{[]string{"sh", "-c", "sh -c 'kill -SEGV $$'; exit $?"}, 139, "exited", ""},
	}) {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			o := husk(t, append([]string{"exec", "--json", id, "--"}, c.args...)...)
			r := decode(t, o)
			signal := ""
			if r.Signal != nil {
				signal = *r.Signal
			}
			if o.code != c.code || r.ExitCode != c.code || r.Reason != c.reason || signal != c.signal {
				t.Errorf("exit code %d, %+v", o.code, r)
			}
			if r.OOMKills == nil || *r.OOMKills != 0 || r.Error != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// badPrograms is a directory of files that cannot be executed, for all to read.
func badPrograms(t *testing.T) string {
	dir := t.TempDir()
	foreign := make([]byte, 128) // an ELF header of a machine that nobody has here
	copy(foreign, "\x7fELF\x02\x01\x01")
	copy(foreign[16:], "\x02\x00\xf3\x80\x01\x00\x00\x00")
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"no-interpreter": {"#!/no/such\n", 0o755},
		"cr":             {"#!/bin/sh\r\necho no\r\n", 0o755},
		"foreign":        {string(foreign), 0o755},
		"plain":          {"echo plain ran\n", 0o755},
		"closed":         {"#!/bin/sh\necho no\n", 0o644},
		"good":           {"#!/bin/sh\necho good $1\n", 0o755},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// B10: 127 for what is not there, its interpreter included; 126 for what cannot be executed. The line
// on stderr names the command.
func TestNotStarted(t *testing.T) {
	id := create(t, "--bind", badPrograms(t)+":/mnt/bad")
	type test struct {
		program string
		code    int // as an argument vector
		inShell int
	}
	for _, c := range fewer(4, []test{
		{"nope", 127, 127},
		{"/etc", 126, 126},
		{"/mnt/bad/cr", 127, 127},
		{"/mnt/bad/plain", 126, 0},
		{"/no/such/program", 127, 127},
		{"./relative", 127, 127},
		{"/etc/passwd/x", 127, 126}, // dash says 127, bash 126
		{"/etc/passwd", 126, 126},
		{"/mnt/bad/closed", 126, 126},
		{"/mnt/bad/no-interpreter", 127, 127},
		{"/mnt/bad/foreign", 126, 126},
		{"/mnt/bad/good", 0, 0},
	}) {
		t.Run(c.program, func(t *testing.T) {
			o := husk(t, "exec", id, "--", c.program, "arg")
			if o.code != c.code || (c.code != 0 && (!strings.HasPrefix(o.stderr, "husk: "+c.program+": ") || strings.Count(o.stderr, "\n") != 1 || o.stdout != "")) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d", o.code, o.stdout, o.stderr, c.code)
			}
			r := decode(t, husk(t, "exec", "--json", id, "--", c.program, "arg"))
			if c.code != 0 && (r.Reason != "not-started" || r.ExitCode != c.code || r.Error == nil || !strings.Contains(*r.Error, c.program)) {
				t.Errorf("%+v", r)
			}
			// bash knows a file of another machine from a script without #!; dash would run it
			if o := husk(t, "exec", id, "--", "bash", "-c", c.program+" arg"); o.code != c.inShell {
				t.Errorf("in a shell: exit code %d, stderr %q; want %d", o.code, o.stderr, c.inShell)
			}
		})
	}
}

// A work directory that is not there is our error and names it, never exit code 127 (as in A25).
func TestNotStartedWorkDir(t *testing.T) {
	for _, dir := range []string{"/no/such", "/etc/passwd"} {
		husk(t, "run", "-w", dir, "--", "true").wantError(t, dir)
	}
}

// Every way of ending that is not the program's own has its reason, exit code and one line for people.
// (timeout, cpu-timeout, oom and output-limit have tests of their own beside the limit.)
func TestReasonKilled(t *testing.T) {
	for _, c := range []struct{ name, grace, trap string }{
		{"with grace", "30", ""},
		{"at once", "0", ""},
		{"deaf to SIGTERM", "0.2", "trap '' TERM; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			id, mark := create(t), newMark(t)
			s := begin(t, nil, "exec", "--json", "-e", "MARK="+mark, id, "--", "sh", "-c", c.trap+"echo up; sleep 300 & wait; wait")
			eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) >= 2 })
			husk(t, "stop", "--grace", c.grace, id).want(t, 0, id+"\n")
			wantNothingLeft(t, mark, "")
			o := s.wait(t, 10*time.Second)
			r := decode(t, o)
			want := 137
			if c.grace == "30" {
				want = 143
			}
			if r.Reason != "killed" || o.code != want || r.ExitCode != want || r.Stdout != "up\n" {
				t.Errorf("exit code %d, %+v; want killed, %d", o.code, r, want)
			}
		})
	}
}

// A program that catches SIGTERM ends a stop with its own exit code.
func TestReasonKilledByStopWithOwnCode(t *testing.T) {
	id, mark := create(t), newMark(t)
	s := begin(t, nil, "exec", "--json", "-e", "MARK="+mark, id, "--", "sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; sleep 300 & wait")
	eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) >= 2 })
	husk(t, "stop", id).want(t, 0, id+"\n")
	o := s.wait(t, 10*time.Second)
	if r := decode(t, o); r.Reason != "killed" || o.code != 7 || r.Stdout != "up\nbye\n" {
		t.Errorf("exit code %d, %+v", o.code, r)
	}
	wantNothingLeft(t, mark, "")
}

// The third SIGINT kills a program that takes no notice (H12: Ctrl-C).
func TestReasonCancelled(t *testing.T) {
	mark := newMark(t)
	s := begin(t, nil, "run", "--json", "-e", "MARK="+mark, "--", "sh", "-c", "trap 'echo no' INT; echo up; while :; do sleep 300; done")
	eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) >= 2 })
	for range 3 {
		if err := s.Process.Signal(unix.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // so that they do not merge into one pending signal
	}
	o := s.wait(t, 10*time.Second)
	r := decode(t, o)
	if r.Reason != "cancelled" || o.code != 130 {
		t.Errorf("exit code %d, %+v", o.code, r)
	}
	wantNothingLeft(t, mark, r.Sandbox)
}

// Signals to husk run reach the program. Issue 2 item 5.
func TestSignalsReachTheProgram(t *testing.T) {
	for _, sig := range fewer(3, []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGUSR1, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR2}) {
		name := unix.SignalName(sig)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			script := fmt.Sprintf("trap 'echo got; exit 9' %s; sleep 300 & wait", strings.TrimPrefix(name, "SIG"))
			s := begin(t, nil, "run", "-e", "MARK="+mark, "--", "sh", "-c", script)
			eventually(t, 10*time.Second, "the program sleeps", func() bool { return len(holders(mark)) >= 2 })
			if err := s.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			s.wait(t, 10*time.Second).want(t, 9, "got\n")
			wantNothingLeft(t, mark, "")
		})
	}
}

// A program that does not catch the signal dies of it, and husk says so with its exit code.
func TestSignalEndsTheProgram(t *testing.T) {
	mark := newMark(t)
	s := begin(t, nil, "run", "--json", "-e", "MARK="+mark, "--", "sleep", "300")
	eventually(t, 10*time.Second, "the program sleeps", func() bool { return len(holders(mark)) >= 1 })
	if err := s.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o := s.wait(t, 10*time.Second)
	if r := decode(t, o); o.code != 143 || r.Reason != "signalled" || r.Signal == nil || *r.Signal != "SIGTERM" {
		t.Errorf("exit code %d, %+v", o.code, r)
	}
}
