package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inside names what a copy of this program is to do in namespaces of its own; see contained_test.go.
const inside = "HUSK_TEST_CGROUP_INSIDE"

func TestMain(m *testing.M) {
	if name := os.Getenv(inside); name != "" {
		if err := runInside(name); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func requireRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("HUSK_VM") == "1" {
		t.Fatal("not root")
	}
	t.Skip("needs root")
}

// rounds is n, and fewer in an emulated machine.
func rounds(n int) int {
	if os.Getenv("HUSK_VM") == "1" {
		return max(n/5, 1)
	}
	return n
}

// deadline is for what takes no time at all unless it hangs.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// testTree opens a tree of this process's own, and removes it after the test, which must have left
// nothing in it.
func testTree(t testing.TB) *Tree {
	t.Helper()
	requireRoot(t)
	parent := "/husk-test-" + strconv.Itoa(os.Getpid())
	tree, err := Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, h := range tree.all {
			if list := subgroups(at(h, parent)); len(list) > 0 {
				t.Errorf("left behind in %s: %q", at(h, parent), list)
			}
			if err := h.remove(deadline(t), parent[1:]); err != nil {
				t.Error(err)
			}
		}
	})
	return tree
}

// at is the path of a group in a hierarchy.
func at(h *hierarchy, group ...string) string {
	return filepath.Join(append([]string{h.point}, group...)...)
}

func x(g *Group) string { return at(g.tree.v2, g.path("x")) }

func subgroups(path string) []string {
	entries, _ := os.ReadDir(path)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func testGroup(t testing.TB, tree *Tree, l Limits) *Group {
	t.Helper()
	group, err := tree.Create("a1", l, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(deadline(t)); err != nil {
			t.Error(err)
		}
	})
	return group
}

func testLeaf(t testing.TB, group *Group, l Limits) *Leaf {
	t.Helper()
	leaf, err := group.Leaf("1", l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := leaf.Remove(); err != nil {
			t.Error(err)
		}
	})
	return leaf
}

// shell is a shell in the leaf: cloned into the v2 group, and by itself into the others.
func shell(leaf *Leaf, script string) *exec.Cmd {
	move := ""
	for i := range leaf.Tasks() {
		move += fmt.Sprintf("echo 0 >&%d && exec %[1]d>&- || exit 99; ", 3+i)
	}
	cmd := exec.Command("/bin/sh", "-c", move+script)
	cmd.ExtraFiles = leaf.Tasks()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(leaf.Into().Fd())}
	return cmd
}

// process is one that is waited for from its start on.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error
}

func wait(t testing.TB, cmd *exec.Cmd) *process {
	p := &process{Cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-p.ended })
	return p
}

func (p *process) Wait() error {
	<-p.ended
	return p.err
}

// killed waits, and says whether it was SIGKILL.
func (p *process) killed() bool {
	_ = p.Wait()
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func start(t testing.TB, leaf *Leaf, script string) *process {
	t.Helper()
	cmd := shell(leaf, script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return wait(t, cmd)
}

// started is start, and waits until the script runs.
func started(t testing.TB, leaf *Leaf, script string) *process {
	t.Helper()
	cmd := shell(leaf, "echo; "+script)
	return wait(t, awaited(t, cmd))
}

// awaited starts a command and reads its first byte.
func awaited(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// groupsOf are the directories that a sandbox has, in all hierarchies.
func groupsOf(tree *Tree, id string) []string {
	var list []string
	for _, h := range tree.all {
		_ = filepath.WalkDir(at(h, tree.parent, id), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				list = append(list, path)
			}
			return nil
		})
	}
	return list
}

func readValue(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// checkError wants one line that names the words.
func checkError(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", words)
		return
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not name %q", err, word)
		}
	}
}

func checkUnavailable(t testing.TB, err error, words ...string) {
	t.Helper()
	checkError(t, err, words...)
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) {
		t.Errorf("error %v is no UnavailableError", err)
	}
}
