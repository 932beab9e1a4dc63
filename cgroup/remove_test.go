package cgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/husk-sandbox/husk/cgroup"
)

func TestRootRemoveAfterKill(t *testing.T) {
	rounds := 200
	if os.Getenv("HUSK_VM") != "" {
		rounds = 40
	}
	g := create(t, "many", cgroup.Limits{})
	var worst time.Duration
	for i := range rounds {
		f := leaf(t, g, fmt.Sprint(i), cgroup.Limits{PIDs: 100, Memory: 64 << 20})
		c := command(f, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100 & done; wait")
		c.Start()
		if i%2 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		f.Kill()
		start := time.Now()
		if err := f.Remove(); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(start))
		c.Wait()
	}
	_, _, all := mounts()
	n := 0
	for _, m := range all {
		es, _ := os.ReadDir(m + parent() + "/many/x")
		for _, e := range es {
			if e.IsDir() {
				n++
			}
		}
	}
	t.Logf("worst remove %v", worst)
	if n != 0 {
		t.Errorf("%d leaves left", n)
	}
}

func TestRootUsage(t *testing.T) {
	g := create(t, "usage", cgroup.Limits{})
	f := leaf(t, g, "1", cgroup.Limits{CPUs: 1})
	c := command(f, "python3", "-c", "import time\nwhile time.process_time()<0.5: pass")
	c.Run()
	r := c.ProcessState.SysUsage().(*syscall.Rusage)
	want := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	u, err := f.Usage()
	if err != nil {
		t.Fatal(err)
	}
	got := *u.CPUUser + *u.CPUSystem
	t.Logf("rusage %v, leaf user %v system %v, peak %v, pids %v hits %v ooms %v", want, *u.CPUUser, *u.CPUSystem, p(u.MemoryPeak), p(u.PIDsPeak), p(u.PIDsLimitHits), p(u.OOMKills))
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("cpu %v, rusage %v", got, want)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
}

func TestRootList(t *testing.T) {
	create(t, "l1", cgroup.Limits{})
	_, _, all := mounts()
	os.MkdirAll(all[len(all)/2]+parent()+"/l2", 0o755)
	ids, err := open(t).List()
	t.Log(ids, err)
	g, err := open(t).Load("l2")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(ctx(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	if err := g.Remove(ctx(t, 5*time.Second)); err != nil {
		t.Error("again:", err)
	}
	if left("l2") != 0 {
		t.Error("left")
	}
}

func TestRootLeafCPUSet(t *testing.T) {
	g := create(t, "set", cgroup.Limits{})
	f, err := g.Leaf("1", cgroup.Limits{CPUSet: "1"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(f, "grep", "Cpus_allowed_list", "/proc/self/status").Output()
	if s := string(out); !strings.HasSuffix(s, "\t1\n") {
		t.Errorf("leaf with CPUSet 1: %q %v", s, err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if err := g.Remove(ctx(t, 5*time.Second)); err != nil || left("set") != 0 {
		t.Error(err, left("set"))
	}
}

func TestRootCPUSetTooLarge(t *testing.T) {
	g, err := open(t).Create("set2", cgroup.Limits{CPUSet: "0-500"}, cgroup.Owner{})
	if err == nil {
		t.Error("CPU set of CPUs that are not there was accepted:", cat(where("cpuset")+parent()+"/set2/x/cpuset.cpus.effective"))
		g.Remove(ctx(t, 5*time.Second))
	}
	t.Log(err)
	if left("set2") != 0 {
		t.Error("left")
	}
}

func TestRootConcurrentLeaves(t *testing.T) {
	create(t, "conc", cgroup.Limits{})
	g, err := open(t).Load("conc")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			f, err := g.Leaf(fmt.Sprint(i), cgroup.Limits{PIDs: 5})
			if err != nil {
				t.Error(err)
				return
			}
			if err := f.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestRootSubgroupInLeaf(t *testing.T) {
	g := create(t, "sub", cgroup.Limits{})
	f := leaf(t, g, "1", cgroup.Limits{})
	os.MkdirAll(where("pids")+parent()+"/sub/x/1/inner/most", 0o755)
	start := time.Now()
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	t.Logf("%v", time.Since(start))
}

func TestRootStragglerInV1(t *testing.T) {
	if open(t).Mode() != cgroup.Hybrid {
		return // no process can be in one hierarchy and not in another
	}
	g := create(t, "strag", cgroup.Limits{})
	c := exec.Command("sleep", "100")
	c.Start()
	os.WriteFile(where("memory")+parent()+"/strag/x/cgroup.procs", []byte(fmt.Sprint(c.Process.Pid)), 0)
	go c.Wait()
	defer c.Process.Kill()
	start := time.Now()
	if err := g.Remove(ctx(t, 3*time.Second)); err != nil {
		t.Error(err)
	}
	t.Logf("%v", time.Since(start))
}

func TestRootUserNamespaceClone(t *testing.T) {
	g := create(t, "userns", cgroup.Limits{})
	f := leaf(t, g, "1", cgroup.Limits{})
	v2, _, _ := mounts()
	guest := v2 + g.GuestPath()
	os.Mkdir(guest, 0o755)
	dir, _ := os.Open(guest)
	defer dir.Close()
	c := exec.Command("/proc/self/exe")
	c.Env = []string{"HELPER=1"}
	c.ExtraFiles = []*os.File{f.Into()}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 1000}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 1000}},
		Credential:  &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true}}
	out, err := c.CombinedOutput()
	if !strings.Contains(string(out), "0::"+parent()+"/userns/x/1\n") || !strings.Contains(string(out), "dotdot <nil> true") {
		t.Errorf("%s %v", out, err)
	}
}

func TestRootUnlimitedParentGetsLimits(t *testing.T) {
	name := parent() + "/late"
	_, _, all := mounts()
	for _, m := range all {
		os.MkdirAll(m+name, 0o755)
		defer os.Remove(m + name)
	}
	if _, err := cgroup.Open(name); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"memory.max", "memory.limit_in_bytes", "memory.swap.max", "memory.memsw.limit_in_bytes"} {
		if s := cat(where("memory") + name + "/" + f); !strings.Contains(s, "no such file") {
			t.Logf("%s %s", f, s)
			if s == "max" || len(s) > 15 {
				t.Errorf("%s of a parent that was there before: %s", f, s)
			}
		}
	}
}
