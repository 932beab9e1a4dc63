package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// file is the path of a sandbox's control file: v2's name, and v1's, which has the controller before it.
func file(t testing.TB, tree *Tree, group, v2, v1 string) string {
	t.Helper()
	if tree.mode == Unified {
		return at(tree.v2, tree.parent, group, v2)
	}
	name, _, _ := strings.Cut(v1, ".")
	i := slices.IndexFunc(tree.all, func(h *hierarchy) bool { return h.has(name) })
	if i < 0 {
		t.Fatalf("no hierarchy has %s", name)
	}
	h := tree.all[i]
	return at(h, tree.parent, group, v1)
}

func TestRootCreate(t *testing.T) {
	tree := testTree(t)
	group, err := tree.Create("a1", Limits{Memory: 64 << 20, CPUs: 0.5, CPUSet: "0", PIDs: 20}, Owner{100000, 100001})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ v2, v1, want2, want1 string }{
		{"memory.max", "memory.limit_in_bytes", "67108864", "67108864"},
		{"cpu.max", "cpu.cfs_quota_us", "50000 100000", "50000"},
		{"pids.max", "pids.max", "20", "20"},
		{"cpuset.cpus", "cpuset.cpus", "0", "0"},
	} {
		want := c.want2
		if tree.mode == Hybrid {
			want = c.want1
		}
		if got := readValue(t, file(t, tree, "a1/x", c.v2, c.v1)); got != want {
			t.Errorf("%s is %q, want %q", c.v2, got, want)
		}
	}
	if tree.swapFile {
		want := map[Mode]string{Unified: "0", Hybrid: "67108864"}[tree.mode]
		got := readValue(t, file(t, tree, "a1/x", "memory.swap.max", "memory.memsw.limit_in_bytes"))
		if got != want {
			t.Errorf("swap limit is %q, want %q", got, want)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(at(tree.v2, tree.parent, "a1/cgroup.procs"), &st); err != nil || st.Uid != 100000 || st.Gid != 100001 {
		t.Errorf("cgroup.procs belongs to %d:%d (%v), want 100000:100001", st.Uid, st.Gid, err)
	}
	loaded, err := tree.Load("a1")
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if _, owner, err := loaded.open(); err != nil || owner != (Owner{100000, 100001}) {
		t.Errorf("loaded with owner %v, %v", owner, err)
	} else {
		loaded.release(loaded.x)
	}
	if ids, err := tree.List(); err != nil || !slices.Equal(ids, []string{"a1"}) {
		t.Errorf("list is %q, %v", ids, err)
	}
	if group.GuestPath() != "/"+tree.parent+"/a1/guest" {
		t.Errorf("guest at %s", group.GuestPath())
	}
	removeTwice(t, tree, group)
}

func removeTwice(t *testing.T, tree *Tree, group *Group) {
	t.Helper()
	for range 2 {
		if err := group.Remove(deadline(t)); err != nil {
			t.Error(err)
		}
	}
	if left := groupsOf(tree, group.id); len(left) > 0 {
		t.Errorf("left after Remove: %q", left)
	}
	if _, err := tree.Load(group.id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load after Remove gives %v, want fs.ErrNotExist", err)
	}
	if ids, err := tree.List(); err != nil || len(ids) > 0 {
		t.Errorf("list after Remove is %q, %v", ids, err)
	}
}

func TestRootHostLimits(t *testing.T) {
	tree := testTree(t)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	path := file(t, tree, "", "memory.max", "memory.limit_in_bytes")
	want := int64(float64(info.Totalram)*0.8) &^ int64(os.Getpagesize()-1)
	if got := readValue(t, path); got != strconv.FormatInt(want, 10) {
		t.Errorf("memory limit of all sandboxes is %s, want %d", got, want)
	}
	pids := file(t, tree, "", "pids.max", "pids.max")
	if got := readValue(t, pids); got != strconv.FormatInt(maxPIDs(), 10) {
		t.Errorf("pids limit of all sandboxes is %s, want %d", got, maxPIDs())
	}
	// an administrator's limit stays, a missing one is made good
	if err := errors.Join(os.WriteFile(path, []byte("1073741824"), 0), os.WriteFile(pids, []byte("max"), 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(tree.parent); err != nil {
		t.Fatal(err)
	}
	if got := readValue(t, path); got != "1073741824" {
		t.Errorf("Open changed the memory limit to %s", got)
	}
	if got := readValue(t, pids); got != strconv.FormatInt(maxPIDs(), 10) {
		t.Errorf("Open left the pids limit at %s", got)
	}
}

// Creating what exists is an error, and must not touch the sandbox that has the id.
func TestRootCreateTwice(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{})
	cmd := started(t, leaf, "exec sleep 600")
	if _, err := tree.Create("a1", Limits{}, Owner{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create gives %v, want fs.ErrExist", err)
	} else {
		checkError(t, err, "a1")
	}
	if _, err := group.Leaf("1", Limits{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Leaf gives %v, want fs.ErrExist", err)
	}
	select {
	case <-cmd.ended:
		t.Error("the first one's process was killed")
	case <-time.After(50 * time.Millisecond):
	}
	if len(groupsOf(tree, "a1/x/1")) == 0 {
		t.Error("the first one's leaf was removed")
	}
}

func TestRootBadInput(t *testing.T) {
	tree := testTree(t)
	for _, id := range []string{"../a", "", "a/b", "guest/../../x"} {
		_, err := tree.Create(id, Limits{}, Owner{})
		checkError(t, err, "group name")
		_, err = tree.Load(id)
		checkError(t, err, "group name")
	}
	for _, l := range []Limits{{Memory: 4096}, {Memory: -1}, {PIDs: -1}, {CPUs: -1}, {CPUSet: "zero"}} {
		_, err := tree.Create("a1", l, Owner{})
		checkError(t, err)
	}
	// what only the kernel knows to be wrong
	_, err := tree.Create("a1", Limits{CPUSet: "0-8191"}, Owner{})
	checkError(t, err, "0-8191")
	_, err = tree.Create("a1", Limits{PIDs: 1 << 60}, Owner{})
	checkError(t, err, "pids.max", "1152921504606846976", "invalid argument")
	if left := groupsOf(tree, "a1"); len(left) > 0 {
		t.Errorf("left by failed Create: %q", left)
	}
	group := testGroup(t, tree, Limits{CPUSet: "0"})
	_, err = group.Leaf("../1", Limits{})
	checkError(t, err, "group name")
	_, err = group.Leaf("1", Limits{Memory: 1})
	checkError(t, err, "minimum")
	_, err = group.Leaf("1", Limits{CPUSet: "1"}) // there may be no such CPU at all: an error as well
	checkError(t, err, "1")
	if left := groupsOf(tree, "a1/x/1"); len(left) > 0 {
		t.Errorf("left by failed Leaf: %q", left)
	}
	for _, parent := range []string{"/", ".", "/a/../b", "/.."} {
		_, err := Open(parent)
		checkError(t, err, "cgroup parent")
	}
}

// A group in the making of which husk was killed.
func TestRootRemoveHalfMade(t *testing.T) {
	tree := testTree(t)
	for i, h := range tree.all {
		group := testGroup(t, tree, Limits{})
		for j, other := range tree.all {
			if (i+j)%3 == 0 {
				_ = other.remove(deadline(t), tree.parent+"/a1")
			}
		}
		if err := os.MkdirAll(at(h, tree.parent, "a1", "guest", "deeper"), 0o755); err != nil {
			t.Fatal(err)
		}
		if group, err := tree.Load("a1"); err != nil {
			t.Error(err)
		} else if i == 0 && tree.mode == Hybrid {
			_, err := group.Leaf("1", Limits{})
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Leaf of a half-made group gives %v, want fs.ErrNotExist", err)
			}
		}
		removeTwice(t, tree, group)
	}
}

// A process that husk, killed meanwhile, had put into a v1 group only cannot be killed by way of v2.
func TestRootRemoveStray(t *testing.T) {
	tree := testTree(t)
	if tree.mode != Hybrid {
		return // there is only one tree to be in
	}
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{})
	cmd := shell(leaf, "echo; while :; do read x; done")
	cmd.SysProcAttr = nil // not into v2
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	stray := wait(t, awaited(t, cmd))
	removeTwice(t, tree, group)
	if !stray.killed() {
		t.Errorf("the process ended by itself: %v", stray.ProcessState)
	}
}

func TestRootNestedParent(t *testing.T) {
	top := testTree(t)
	tree, err := Open("/" + top.parent + "/b/c")
	if err != nil {
		t.Fatal(err)
	}
	group := testGroup(t, tree, Limits{Memory: 16 << 20, CPUSet: "0"})
	if got := readValue(t, file(t, tree, "a1/x", "memory.max", "memory.limit_in_bytes")); got != "16777216" {
		t.Errorf("memory limit is %s", got)
	}
	removeTwice(t, tree, group)
	for _, h := range tree.all {
		if err := h.remove(deadline(t), top.parent+"/b"); err != nil {
			t.Error(err)
		}
	}
}
