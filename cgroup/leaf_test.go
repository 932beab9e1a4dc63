package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hungry doubles a string for ever.
const hungry = "x=0123456789abcdef; while :; do x=$x$x; done"

func TestRootOOMKills(t *testing.T) {
	tree := testTree(t)
	for _, c := range []struct {
		name, script string
		killed       bool // the main process
		kills        int64
	}{
		{"a child", "(" + hungry + "); [ $? = 137 ]", false, 1},
		{"the main process", hungry, true, 1},
		{"another signal", "kill -9 $$", true, 0},
		{"nobody", "exit 0", false, 0},
	} {
		group := testGroup(t, tree, Limits{Memory: 256 << 20})
		leaf := testLeaf(t, group, Limits{Memory: 32 << 20})
		cmd := start(t, leaf, c.script)
		if got := cmd.killed(); got != c.killed || !got && !cmd.ProcessState.Success() {
			t.Errorf("%s: ended with %v", c.name, cmd.ProcessState)
		}
		u, err := leaf.Usage()
		if err != nil || u.OOMKills == nil || *u.OOMKills != c.kills {
			t.Errorf("%s: usage %s, %v, want %d kills", c.name, describe(u), err, c.kills)
		}
		if c.kills > 0 && (u.MemoryPeak == nil || *u.MemoryPeak < 24<<20 || *u.MemoryPeak > 33<<20) {
			t.Errorf("%s: usage %s, want a peak near 32 MiB", c.name, describe(u))
		}
		if err := errors.Join(leaf.Remove(), group.Remove(deadline(t))); err != nil {
			t.Error(err)
		}
	}
}

func describe(u Usage) string {
	show := func(n *int64) string {
		if n == nil {
			return "nil"
		}
		return fmt.Sprint(*n)
	}
	return fmt.Sprintf("{cpu %v+%v memory %s pids %s oom %s forks %s}", u.CPUUser, u.CPUSystem, show(u.MemoryPeak),
		show(u.PIDsPeak), show(u.OOMKills), show(u.PIDsLimitHits))
}

// The sandbox's own numbers outlive the leaves, or are nil; 0 would be a lie.
func TestRootGroupUsage(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{Memory: 256 << 20})
	leaf := testLeaf(t, group, Limits{Memory: 32 << 20})
	if !start(t, leaf, hungry).killed() {
		t.Error("not killed")
	}
	used := cpuTime(t, leaf)
	if err := leaf.Remove(); err != nil {
		t.Fatal(err)
	}
	u, err := group.Usage()
	if err != nil || u.MemoryPeak == nil || *u.MemoryPeak < 24<<20 || u.CPUUser == nil || *u.CPUUser+*u.CPUSystem < used {
		t.Errorf("usage %s, %v, want %v and a peak near 32 MiB", describe(u), err, used)
	}
	if kills := u.OOMKills; kills == nil && tree.mode == Unified || kills != nil && *kills != 1 {
		t.Errorf("usage %s, want one kill if any number", describe(u))
	}
}

// The whole group dies: by the kernel on v2; on hybrid there is an event, and we kill.
func TestRootOOMGroup(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{Memory: 32 << 20, OOMGroup: true})
	events, err := leaf.OOMEvents()
	if err != nil {
		t.Fatal(err)
	}
	if (events != nil) != (tree.mode == Hybrid) {
		t.Fatalf("events are %v on mode %d", events, tree.mode)
	}
	cmd := start(t, leaf, "("+hungry+"); sleep 600")
	if events != nil {
		fds := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLIN}}
		var n int
		for n, err = unix.Poll(fds, 60_000); errors.Is(err, unix.EINTR); n, err = unix.Poll(fds, 60_000) {
		}
		if n != 1 || err != nil {
			t.Fatalf("no event: %v", err)
		}
		if again, err := leaf.OOMEvents(); again != events || err != nil {
			t.Errorf("second call gives %v, %v", again, err)
		}
		if err := leaf.Kill(); err != nil {
			t.Error(err)
		}
	}
	if !cmd.killed() {
		t.Errorf("ended with %v, want killed", cmd.ProcessState)
	}
}

func TestRootNoOOMEvents(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{Memory: 32 << 20})
	if events, err := leaf.OOMEvents(); events != nil || err != nil {
		t.Errorf("without OOMGroup: %v, %v", events, err)
	}
}

func TestRootForkLimit(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{PIDs: 5})
	cmd := start(t, leaf, "for i in 1 2 3 4 5 6 7 8; do sleep 600 & done")
	_ = cmd.Wait()
	if cmd.ProcessState.Success() {
		t.Error("nine processes under a limit of five")
	}
	u, err := leaf.Usage()
	if err != nil || u.PIDsLimitHits == nil || *u.PIDsLimitHits < 1 {
		t.Errorf("usage %s, %v, want limit hits", describe(u), err)
	}
	if u.PIDsPeak != nil && *u.PIDsPeak != 5 {
		t.Errorf("usage %s, want a peak of 5", describe(u))
	}
}

func cpuTime(t testing.TB, leaf *Leaf) time.Duration {
	t.Helper()
	u, err := leaf.Usage()
	if err != nil || u.CPUUser == nil || u.CPUSystem == nil {
		t.Fatalf("usage %s, %v, want CPU times", describe(u), err)
	}
	return *u.CPUUser + *u.CPUSystem
}

// usedUp reads CPUFile as the guest does.
func usedUp(t testing.TB, leaf *Leaf) time.Duration {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := leaf.CPUFile().ReadAt(buf, 0)
	used, ok := field(buf[:n], "usage_usec")
	if !ok || leaf.CPUFileIsV1() {
		t.Fatalf("CPUFile holds %q, %v", buf[:n], err)
	}
	return time.Duration(used) * time.Microsecond
}

func TestRootCPUTime(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{})
	if got := cpuTime(t, leaf); got != 0 {
		t.Errorf("%v used by nobody", got)
	}
	begin := time.Now()
	cmd := start(t, leaf, "while :; do :; done")
	for usedUp(t, leaf) < 200*time.Millisecond {
		if time.Since(begin) > time.Minute {
			t.Fatalf("a loop used %v in a minute", usedUp(t, leaf))
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	wall := time.Since(begin)
	got, sum := cpuTime(t, leaf), usedUp(t, leaf)
	if got < 200*time.Millisecond || got > wall+20*time.Millisecond {
		t.Errorf("%v used in %v", got, wall)
	}
	if d := got - sum; d < -time.Microsecond*2 || d > time.Microsecond*2 {
		t.Errorf("user and system time are %v together, and CPUFile says %v", got, sum)
	}
	// told apart by ticks, of which few hit user space in an emulated machine
	if u, _ := leaf.Usage(); *u.CPUUser <= 0 {
		t.Errorf("a loop in user space: usage %s", describe(u))
	}
}

func TestRootCPUQuota(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{CPUs: 0.2}), Limits{})
	begin := time.Now()
	cmd := start(t, leaf, "while :; do :; done")
	for time.Since(begin) < time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// a period's quota at either end, and up to a tick over it in each
	if got, most := cpuTime(t, leaf), time.Since(begin)*30/100+60*time.Millisecond; got > most {
		t.Errorf("%v used, at most %v for 0.2 CPUs", got, most)
	}
}

func TestRootLeafLimits(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{Memory: 64 << 20})
	if err := group.Close(); err != nil {
		t.Error(err)
	}
	loaded, err := tree.Load("a1") // as another husk does
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	leaf := testLeaf(t, loaded, Limits{Memory: 8 << 20, CPUs: 0.25, PIDs: 3, CPUSet: "0"})
	for _, c := range []struct{ v2, v1, want string }{
		{"memory.max", "memory.limit_in_bytes", "8388608"},
		{"cpu.max", "cpu.cfs_quota_us", "25000"},
		{"pids.max", "pids.max", "3"},
		{"cpuset.cpus", "cpuset.cpus", "0"},
	} {
		got, _, _ := strings.Cut(readValue(t, file(t, tree, "a1/x/1", c.v2, c.v1)), " ")
		if got != c.want {
			t.Errorf("%s is %s, want %s", c.v2, got, c.want)
		}
	}
	cmd := start(t, leaf, "grep Cpus_allowed_list: /proc/self/status | grep -q '[[:space:]]0$'")
	if err := cmd.Wait(); err != nil {
		t.Errorf("runs on other CPUs than 0: %v", err)
	}
}

// The sandbox's CPU set holds for leaves that ask for none.
func TestRootCPUSetInherited(t *testing.T) {
	tree := testTree(t)
	leaf := testLeaf(t, testGroup(t, tree, Limits{CPUSet: "0"}), Limits{})
	cmd := start(t, leaf, "grep Cpus_allowed_list: /proc/self/status | grep -q '[[:space:]]0$'")
	if err := cmd.Wait(); err != nil {
		t.Errorf("runs on other CPUs than 0: %v", err)
	}
}

// A child that writes 0 is in the leaf in every hierarchy that limits it.
func TestRootTasks(t *testing.T) {
	tree := testTree(t)
	leaf := testLeaf(t, testGroup(t, tree, Limits{}), Limits{})
	cmd := shell(leaf, "cat /proc/self/cgroup")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range tree.used(false) {
		// where there is nothing to limit it stands in x
		want := fmt.Sprintf(":%s:/%s/a1/x", strings.Join(h.v1Controllers(), ","), tree.parent)
		if h.v2 || h.has("memory") || h.has("pids") {
			want += "/1\n"
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if n := len(leaf.Tasks()); n != len(tree.used(false))-1 {
		t.Errorf("%d tasks files for %d hierarchies", n, len(tree.used(false))-1)
	}
}

func TestRootRemovedLeaf(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{})
	if err := leaf.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Usage(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("usage of a removed leaf: %v, want fs.ErrNotExist", err)
	}
	if err := errors.Join(leaf.Kill(), leaf.Remove()); err != nil {
		t.Errorf("of a removed leaf: %v", err)
	}
}

// pids.peak came with Linux 6.6; the rest is in every kernel that we run on.
func TestRootUsageIsComplete(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{})
	if err := start(t, leaf, ":").Wait(); err != nil {
		t.Error(err)
	}
	u, err := leaf.Usage()
	if err != nil || u.CPUUser == nil || u.CPUSystem == nil || u.MemoryPeak == nil || u.OOMKills == nil || u.PIDsLimitHits == nil {
		t.Errorf("usage %s, %v", describe(u), err)
	}
	// on hybrid the shell's memory was charged before it moved
	if *u.CPUUser+*u.CPUSystem <= 0 || *u.MemoryPeak <= 0 && leaf.group.tree.mode == Unified {
		t.Errorf("usage %s of a shell", describe(u))
	}
	has, err := exists(leaf.x.of[pids], "pids.peak")
	if err != nil || has != (u.PIDsPeak != nil) {
		t.Errorf("usage %s, and pids.peak exists: %v, %v", describe(u), has, err)
	}
}

// C5: what was started, killed and removed leaves nothing in any hierarchy.
func TestRootRemoveLeavesNothing(t *testing.T) {
	tree := testTree(t)
	before := descriptors(t)
	for range rounds(100) {
		group := testGroup(t, tree, Limits{Memory: 64 << 20})
		leaf := testLeaf(t, group, Limits{PIDs: 64})
		cmd := started(t, leaf, "for i in 1 2 3 4 5; do sleep 600 & done; sleep 600")
		if err := leaf.Remove(); err != nil {
			t.Fatal(err)
		}
		if !cmd.killed() {
			t.Fatalf("ended with %v", cmd.ProcessState)
		}
		if err := group.Remove(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if left := groupsOf(tree, "a1"); len(left) > 0 {
			t.Fatalf("left: %q", left)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// C5 with groups that were made inside.
func TestRootRemoveNested(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{})
	for _, h := range tree.used(false) {
		if err := os.MkdirAll(at(h, tree.parent, "a1/x/1/own/deep"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	started(t, leaf, "sleep 600")
	if err := leaf.Remove(); err != nil {
		t.Error(err)
	}
	if left := groupsOf(tree, "a1/x/1"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestRootConcurrentLeaves(t *testing.T) {
	tree := testTree(t)
	testGroup(t, tree, Limits{})
	group, err := tree.Load("a1") // nothing is open yet
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	before := descriptors(t)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range rounds(25) {
				if err := useLeaf(group, fmt.Sprintf("%d-%d", worker, i), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	_ = group.Close()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if left := groupsOf(tree, "a1/x"); len(left) > len(tree.used(false))+1 { // cpuset has come
		t.Errorf("left: %q", left)
	}
}

func useLeaf(group *Group, name string, i int) error {
	l := Limits{PIDs: 10}
	if i%5 == 4 {
		l.CPUSet = "0"
	}
	leaf, err := group.Leaf(name, l)
	if err != nil {
		return err
	}
	if i%3 == 0 {
		_ = group.Close() // does not take anything from a leaf
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _, _ = leaf.Usage(); _ = leaf.Kill(); _ = leaf.Remove() })
	}
	_, err = leaf.Usage()
	if errors.Is(err, fs.ErrNotExist) { // one of the two was faster
		err = nil
	}
	all.Wait()
	return errors.Join(err, leaf.Remove())
}

// A leaf in use while its sandbox is removed gives errors, no panics.
func TestRootRemoveUnderLeaf(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{})
	if err := group.Remove(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Usage(); err == nil {
		t.Error("usage of what is gone")
	}
	_ = leaf.Kill()
	if err := leaf.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := group.Leaf("2", Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leaf of a removed sandbox: %v, want fs.ErrNotExist", err)
	}
	if _, err := group.Leaf("2", Limits{CPUSet: "0"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leaf with a CPU set of a removed sandbox: %v, want fs.ErrNotExist", err)
	}
	if left := groupsOf(tree, "a1"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
