package integration

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Nothing of an execution outlives it, whatever its processes do. B1, B2, B4, issue 2 item 4.
func TestTreeDies(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         int
		reason       string
		flags        []string
	}{
		{"B1 background child holds the pipes", "sleep 300 & echo started", 0, "exited", nil},
		{"B1 grandchild holds the pipes", "(sleep 300 & sleep 301 &) ; echo started", 0, "exited", nil},
		{"B2 descendants after a timeout", "echo started; sh -c 'sleep 300 & sleep 301 & wait'", 124, "timeout", []string{"--timeout", timeout(time.Second)}},
		{"B4 nohup setsid", "nohup setsid sleep 1000 >/dev/null 2>&1 & echo started; exit 0", 0, "exited", nil},
		{"double fork", `python3 -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/"); time.sleep(300)
    os._exit(0)
os.wait()
print("started")'`, 0, "exited", nil},
		{"stopped child", "sleep 300 & kill -STOP $!; echo started", 0, "exited", nil},
		{"stopped main process", "echo started; sleep 300 & kill -STOP $$", 124, "timeout", []string{"--timeout", timeout(time.Second)}},
		{"deaf to every signal", `python3 -c '
import signal, os, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
print("started", flush=True)
os.fork()
time.sleep(300)'`, 124, "timeout", []string{"--timeout", timeout(2 * time.Second)}},
		{"fork bomb", "echo started; f() { f | f & f; }; f & while :; do :; done", 124, "timeout", []string{"--timeout", timeout(2 * time.Second)}},
		{"fork bomb that outlives its parent", "echo started; f() { f | f & f; }; f >/dev/null 2>&1 & sleep 0.5", 0, "exited", nil},
		{"children that are born while it dies", `echo started; for i in 1 2 3 4 5 6 7 8; do
			sh -c 'while :; do sleep 0.01 & done' 2>/dev/null & done; sleep 0.3`, 0, "exited", nil},
		{"vfork bomb of exec", "echo started; for i in 1 2 3 4; do sh -c 'while :; do exec sh -c \"$0\" \"$0\"; done' 'exec sh -c \"$0\" \"$0\"' & done; sleep 0.3", 0, "exited", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !inVM() { // where bombs side by side would leave nothing to each other
				t.Parallel()
			}
			mark := newMark(t)
			flags := append([]string{"--json", "-e", "MARK=" + mark, "--timeout", timeout(15 * time.Second)}, c.flags...)
			o := husk(t, append(append([]string{"run"}, flags...), "--", "sh", "-c", c.script, mark)...)
			r := decode(t, o)
			wantNothingLeft(t, mark, r.Sandbox)
			if o.code != c.code || r.Reason != c.reason || !strings.HasPrefix(r.Stdout, "started") {
				t.Errorf("exit code %d, %s, stdout %q, stderr %.200q", o.code, r.Reason, r.Stdout, r.Stderr)
			}
			if limit := 3 * time.Second; c.reason == "exited" && o.took > patience(limit) {
				t.Errorf("returned after %v", o.took)
			}
		})
	}
}

// timeout is patience for husk's own flag.
func timeout(d time.Duration) string { return (patience(d) / 2).String() }

// The same in a sandbox that lives on: its next execution sees nothing of the last one (B1, B4; an
// execution's processes die with it, in scope sandbox too).
func TestTreeDiesInSandbox(t *testing.T) {
	for _, scope := range []string{"execute", "sandbox"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			id, mark := create(t, "--scope", scope), newMark(t)
			for range 3 {
				o := husk(t, "exec", "-e", "MARK="+mark, id, "--", "sh", "-c", "setsid sleep 300 & sleep 301 & echo started")
				o.want(t, 0, "started\n")
				wantNothingLeft(t, mark, "")
			}
			if left := leavesOf(id); len(left) > 0 {
				t.Errorf("cgroups of ended executions left: %q", left)
			}
		})
	}
}

// B7: orphans are reaped while the execution runs, so that the pids limit is never used up by zombies.
func TestOrphansAreReaped(t *testing.T) {
	n := rounds(200)
	script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do sh -c '(sleep 0.01 &) ; true'; i=$((i+1)); done
		sleep 0.5; cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; ls -d /usr`, n)
	o := sh(t, script, "--pids", "64")
	o.want(t, 0, "0\n/usr\n")
}

// zombies is a C program, since a fork of an interpreter takes milliseconds.
const zombies = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i > 0; i--) {
		int pid = vfork();
		if (pid == 0)
			_exit(0);
		if (pid < 0)
			return perror("fork"), 1;
	}
	puts("made");
	return 0;
}`

// Zombies by the thousand, that nobody waits for, keep nothing up. Issue 2 item 4.
func TestThousandsOfZombies(t *testing.T) {
	source := envFile(t, "zombies.c", zombies)
	program := source + "ombies"
	if text, err := exec.Command("gcc", "-O1", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	mark := newMark(t)
	o := husk(t, "run", "--json", "--pids", "4000", "-e", "MARK="+mark, "--bind", program+":/mnt/zombies", "--", "/mnt/zombies", "3000")
	r := decode(t, o)
	wantNothingLeft(t, mark, r.Sandbox)
	if o.code != 0 || r.Stdout != "made\n" || r.PIDsPeak != nil && *r.PIDsPeak != 3001 || o.took > patience(10*time.Second) {
		t.Errorf("exit code %d after %v, %+v", o.code, o.took, r)
	}
}

// C5: groups that were full of processes a moment ago are removed, every time.
func TestGroupsAreRemoved(t *testing.T) {
	id, mark := create(t), newMark(t)
	for range rounds(20) {
		o := husk(t, "exec", "--timeout", "0.1", "-e", "MARK="+mark, id, "--", "sh", "-c", "for i in $(seq 50); do sleep 100 & done; wait")
		if o.code != 124 || strings.Count(o.stderr, "\n") > 1 {
			t.Fatalf("exit code %d, stderr %q", o.code, o.stderr)
		}
		if left := leavesOf(id); len(left) > 0 {
			t.Fatalf("cgroups left: %q", left)
		}
	}
	wantNothingLeft(t, mark, "")
	husk(t, "rm", "-f", id)
	if left := groupsOf(id); len(left) > 0 {
		t.Errorf("cgroups left: %q", left)
	}
}

// H12: when husk is killed, the program is dead within a second, and the next husk clears the rest.
func TestHuskKilled(t *testing.T) {
	id := create(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"run", []string{"run"}},
		{"exec", []string{"exec", id}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := newMark(t)
			args := []string{c.args[0], "-e", "MARK=" + mark}
			args = append(append(args, c.args[1:]...), "--", "sh", "-c", "trap '' TERM HUP INT PIPE; setsid sleep 300 & while :; do sleep 1; done")
			s := begin(t, nil, args...)
			eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) >= 3 })
			sandbox := sandboxOf(t, holders(mark)[0])
			if err := s.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait()
			eventually(t, time.Second/2, "all of it is dead", func() bool { return len(holders(mark)) == 0 })
			if c.name == "exec" {
				husk(t, "exec", id, "--", "echo", "usable").want(t, 0, "usable\n")
				return
			}
			husk(t, "run", "--", "true").want(t, 0, "")
			wantNothingLeft(t, mark, sandbox)
		})
	}
}
