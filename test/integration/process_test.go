package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// started is a husk that runs beside the test.
type started struct {
	*exec.Cmd
	out, err bytes.Buffer // complete after wait
}

// begin starts husk in the background; what is left of it at the test's end is killed.
func begin(t *testing.T, set func(*exec.Cmd), args ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.Command(bin, args...)}
	s.Stdout, s.Stderr = &s.out, &s.err
	if set != nil {
		set(s.Cmd)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.ProcessState == nil {
			_ = s.Process.Kill()
			_ = s.Wait()
		}
	})
	return s
}

// wait gives its outcome; one that has not ended after d (stretched) fails the test.
func (s *started) wait(t *testing.T, d time.Duration) outcome {
	t.Helper()
	start := time.Now()
	late := time.AfterFunc(patience(d), func() { _ = s.Process.Kill() })
	_ = s.Wait()
	if !late.Stop() {
		t.Fatalf("%q: still running after %v; stdout %.300q, stderr %.300q", s.Args, patience(d), s.out.String(), s.err.String())
	}
	return outcome{s.out.String(), s.err.String(), s.ProcessState.ExitCode(), time.Since(start)}
}

// fewer is all of the cases here; in the virtual machine, where each husk takes seconds, the first n stand
// for the rest: tables begin with what depends on the kernel.
func fewer[T any](n int, cases []T) []T {
	if inVM() {
		return cases[:min(n, len(cases))]
	}
	return cases
}

// newMark is a word that no other process on this host knows.
func newMark(t *testing.T) string {
	return fmt.Sprintf("mark-%s-%d", strings.Map(wordOnly, t.Name()), time.Now().UnixNano())
}

func wordOnly(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// holders are this host's processes with mark in their arguments or in the environment that they were
// started with, in the form "pid arguments"; husk itself and its helpers do not count.
func holders(mark string) []string {
	var list []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if dir == fmt.Sprint("/proc/", os.Getpid()) {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		if !bytes.Contains(cmdline, []byte(mark)) && !bytes.Contains(environ, []byte(mark)) {
			continue
		}
		if exe, _ := os.Readlink(dir + "/exe"); exe == bin {
			continue
		}
		list = append(list, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return list
}

// groupsOf are the directories of the sandbox's cgroups in every hierarchy.
func groupsOf(sandbox string) []string {
	var list []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == sandbox {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// wantNothingLeft asserts at once, without waiting: when the command has returned, all is over.
func wantNothingLeft(t *testing.T, mark, sandbox string) {
	t.Helper()
	if left := holders(mark); len(left) > 0 {
		t.Errorf("%d processes left on the host, the first: %.200s", len(left), left[0])
	}
	if sandbox == "" {
		return
	}
	if left := groupsOf(sandbox); len(left) > 0 {
		t.Errorf("cgroups left: %q", left)
	}
	if _, err := os.Stat("/var/lib/husk/sandboxes/" + sandbox); err == nil && os.Getenv("HUSK_ROOT") == "" {
		t.Errorf("directory of sandbox %s left", sandbox)
	}
}

// leavesOf are the cgroups of a sandbox's executions.
func leavesOf(sandbox string) []string {
	var list []string
	for _, group := range groupsOf(sandbox) {
		leaves, _ := filepath.Glob(group + "/x/*/cgroup.procs")
		list = append(list, leaves...)
	}
	return list
}

// sandboxOf is the id of the sandbox that a process of the host belongs to, by its cgroup.
func sandboxOf(t *testing.T, holder string) string {
	t.Helper()
	pid, _, _ := strings.Cut(holder, " ")
	groups, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, path, ok := strings.Cut(string(groups), "/husk/")
	id, _, ok2 := strings.Cut(path, "/")
	if !ok || !ok2 {
		t.Fatalf("process %s is in none of husk's cgroups: %q", pid, groups)
	}
	return id
}

// hostShell runs a script on the host, that runs husk in turn.
func hostShell(t *testing.T, script string) outcome {
	t.Helper()
	s := &started{Cmd: exec.Command("bash", "-c", script)}
	s.Stdout, s.Stderr = &s.out, &s.err
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s.wait(t, time.Minute)
}

// pureV2: on hybrid hosts the controllers are in hierarchies of their own.
func pureV2(t *testing.T) bool {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil {
		t.Fatal(err)
	}
	return fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// groupFile reads a file of a sandbox's leaf on the host: its name on pure v2, its path below
// /sys/fs/cgroup/CONTROLLER/… on hybrid hosts. Empty: there is none.
func groupFile(t *testing.T, sandbox, v2, controller, v1 string) string {
	t.Helper()
	for _, group := range groupsOf(sandbox) {
		name := v1
		if pureV2(t) {
			name = v2
		} else if !strings.HasPrefix(group, "/sys/fs/cgroup/"+controller) {
			continue
		}
		files, _ := filepath.Glob(group + "/x/*/" + name)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				return strings.TrimSpace(string(text))
			}
		}
	}
	return ""
}
