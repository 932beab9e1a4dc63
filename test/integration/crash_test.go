package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faultPoints are the places at which husk can be made to kill itself (runtime/fault.go).
var faultPoints = []string{"dirs", "cgroups", "guest", "created", "started", "destroy", "cleared"}

// store is a husk with state of its own, so that what one test leaves cannot be cleared by another.
type store struct {
	t              *testing.T
	root, run, top string
}

func newStore(t *testing.T) *store {
	t.Helper()
	dir := t.TempDir()
	s := &store{t, filepath.Join(dir, "root"), filepath.Join(dir, "run"), fmt.Sprintf("/husk-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e6)}
	t.Cleanup(s.removeGroups)
	return s
}

func (s *store) flags() []string {
	return []string{"--root", s.root, "--run", s.run, "--cgroup-parent", s.top}
}

func (s *store) husk(args ...string) outcome {
	s.t.Helper()
	return husk(s.t, append(s.flags(), args...)...)
}

// groups are the directories of its sandboxes in any hierarchy.
func (s *store) groups() []string {
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup" + s.top + "/*", "/sys/fs/cgroup/*" + s.top + "/*"} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.IsDir() {
				all = append(all, f)
			}
		}
	}
	return all
}

func (s *store) removeGroups() {
	for _, pattern := range []string{"/sys/fs/cgroup" + s.top, "/sys/fs/cgroup/*" + s.top} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			_ = syscall.Rmdir(f)
		}
	}
}

// nothingLeft: no sandbox, group, id range, CPU or run directory.
func (s *store) nothingLeft() {
	s.t.Helper()
	if g := s.groups(); len(g) > 0 {
		s.t.Errorf("groups left: %q", g)
	}
	for _, dir := range []string{s.root + "/sandboxes", s.root + "/names", s.run + "/ids", s.run + "/cpus"} {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			s.t.Errorf("left in %s: %v", dir, entries)
		}
	}
	entries, _ := os.ReadDir(s.run)
	for _, e := range entries {
		if e.Name() != "ids" && e.Name() != "cpus" && e.Name() != "cpus.lock" {
			s.t.Errorf("left in %s: %s", s.run, e.Name())
		}
	}
}

// running: processes of the host with that argument.
func running(marker string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range dirs {
		text, _ := os.ReadFile(f)
		for arg := range bytes.SplitSeq(text, []byte{0}) {
			if string(arg) == marker {
				found = append(found, f)
			}
		}
	}
	return found
}

func mountsOf(dir string) int {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return strings.Count(string(text), dir)
}

// TestKilledAtEachPoint: `husk run` dies by SIGKILL at each of its steps; no command of it runs on for
// longer than a second, no mount is ever on the host, and the next command clears the rest (I1 for what
// exists so far; probe 53).
func TestKilledAtEachPoint(t *testing.T) {
	for _, point := range faultPoints {
		t.Run(point, func(t *testing.T) {
			s := newStore(t)
			marker := fmt.Sprintf("%d.%06d", 1000+os.Getpid()%1000, time.Now().UnixNano()%1e6)
			args := append(s.flags(), "run", "--name", "again", "--", "sleep", marker)
			if point == "destroy" || point == "cleared" {
				args = append(s.flags(), "run", "--name", "again", "--", "true")
			}
			cmd := exec.Command(bin, args...)
			cmd.Env = append(os.Environ(), "HUSK_FAULT="+point)
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("did not die at %q: %v", point, err)
			}
			eventually(t, time.Second, "its command is dead", func() bool { return len(running(marker)) == 0 })
			if n := mountsOf(s.run); n != 0 {
				t.Errorf("%d mounts on the host", n)
			}
			s.husk("run", "--name", "again", "--", "echo", "next").want(t, 0, "next\n")
			s.nothingLeft()
		})
	}
}

// TestKilledAtRandom: the same at moments that nobody chose.
func TestKilledAtRandom(t *testing.T) {
	s := newStore(t)
	for i := range rounds(20) {
		marker := fmt.Sprintf("%d.%06d", 2000+i, time.Now().UnixNano()%1e6)
		cmd := exec.Command(bin, append(s.flags(), "run", "--", "sleep", marker)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(patience(time.Duration(i) * 4 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		eventually(t, time.Second, "its command is dead", func() bool { return len(running(marker)) == 0 })
	}
	if n := mountsOf(s.run); n != 0 {
		t.Errorf("%d mounts on the host", n)
	}
	s.husk("ps", "-q").want(t, 0, "")
	s.nothingLeft()
}

// TestKilledClientOfLivingSandbox: the sandbox lives on, the execution does not (H12).
func TestKilledClientOfLivingSandbox(t *testing.T) {
	s := newStore(t)
	id := strings.TrimSpace(s.husk("create").stdout)
	marker := fmt.Sprintf("3000.%06d", time.Now().UnixNano()%1e6)
	cmd := exec.Command(bin, append(s.flags(), "exec", id, "--", "sleep", marker)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "its command runs", func() bool { return len(running(marker)) == 1 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, time.Second, "its command is dead", func() bool { return len(running(marker)) == 0 })
	s.husk("exec", id, "--", "echo", "lives").want(t, 0, "lives\n")
	s.husk("rm", "-f", id).want(t, 0, id+"\n")
	s.nothingLeft()
}

// TestKilledGuest: the sandbox is in error, says so, and can be removed.
func TestKilledGuest(t *testing.T) {
	s := newStore(t)
	id := strings.TrimSpace(s.husk("create", "--name", "victim").stdout)
	killGuest(t, s)
	o := s.husk("exec", "victim", "--", "true")
	o.wantError(t, "not running")
	if o := s.husk("ps", "-a"); !strings.Contains(o.stdout, "error") {
		t.Errorf("ps -a: %q", o.stdout)
	}
	s.husk("rm", "victim").want(t, 0, "victim\n")
	if id == "" {
		t.Error("no id")
	}
	s.nothingLeft()
}

func killGuest(t *testing.T, s *store) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup" + s.top + "/*/guest/cgroup.procs", "/sys/fs/cgroup/*" + s.top + "/*/guest/cgroup.procs"} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			text, _ := os.ReadFile(f)
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
		}
	}
	t.Fatal("no guest found")
}
