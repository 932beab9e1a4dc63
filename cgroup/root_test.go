package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
)

func parent() string { return fmt.Sprintf("/husk-test-%d", os.Getpid()) }

func mounts() (v2 string, v1 map[string]string, all []string) {
	v1 = map[string]string{}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		l, r, _ := strings.Cut(line, " - ")
		lf, rf := strings.Fields(l), strings.Fields(r)
		switch rf[0] {
		case "cgroup2":
			v2 = lf[4]
			all = append(all, lf[4])
		case "cgroup":
			all = append(all, lf[4])
			for o := range strings.SplitSeq(rf[2], ",") {
				v1[o] = lf[4]
			}
		}
	}
	return
}

func where(c string) string {
	v2, v1, _ := mounts()
	if m := v1[c]; m != "" {
		return m
	}
	return v2
}

func TestMain(m *testing.M) {
	if os.Getenv("HELPER") != "" {
		helper()
		return
	}
	code := m.Run()
	_, _, all := mounts()
	for _, dir := range all {
		filepath.WalkDir(dir+parent(), func(p string, d fs.DirEntry, err error) error { return nil })
		rmAll(dir + parent())
	}
	os.Exit(code)
}

func rmAll(dir string) {
	es, _ := os.ReadDir(dir)
	os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
	for _, e := range es {
		if e.IsDir() {
			rmAll(dir + "/" + e.Name())
		}
	}
	for i := 0; i < 50 && syscall.Rmdir(dir) == syscall.EBUSY; i++ {
		time.Sleep(20 * time.Millisecond)
	}
}

func helper() {
	c := exec.Command("/bin/cat", "/proc/self/cgroup")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: 3}
	out, err := c.CombinedOutput()
	fmt.Printf("%s err=%v\n", out, err)
	d, err := unix.Openat(3, "..", unix.O_PATH, 0)
	var a, b unix.Stat_t
	unix.Fstat(3, &a)
	unix.Fstat(d, &b)
	fmt.Printf("dotdot %v %v\n", err, a.Ino == b.Ino)
}

func scale(d time.Duration) time.Duration {
	if os.Getenv("HUSK_VM") != "" {
		return d * 10
	}
	return d
}

func ctx(t testing.TB, d time.Duration) context.Context {
	c, cancel := context.WithTimeout(context.Background(), scale(d))
	t.Cleanup(cancel)
	return c
}

func open(t testing.TB) *cgroup.Tree {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	tree, err := cgroup.Open(parent())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func create(t testing.TB, id string, l cgroup.Limits) *cgroup.Group {
	g, err := open(t).Create(id, l, cgroup.Owner{UID: 100000, GID: 100000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Remove(ctx(t, 10*time.Second)) })
	return g
}

func leaf(t testing.TB, g *cgroup.Group, name string, l cgroup.Limits) *cgroup.Leaf {
	f, err := g.Leaf(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func command(f *cgroup.Leaf, args ...string) *exec.Cmd {
	script := ""
	for i := range f.Tasks() {
		script += fmt.Sprintf("echo 0 >&%d; exec %d>&-; ", i+3, i+3)
	}
	c := exec.Command("/bin/sh", append([]string{"-c", script + `exec "$@"`, "sh"}, args...)...)
	c.ExtraFiles = f.Tasks()
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Into().Fd())}
	return c
}

func left(id string) (n int) {
	_, _, all := mounts()
	for _, dir := range all {
		filepath.WalkDir(dir+parent()+"/"+id, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				n++
			}
			return nil
		})
	}
	return
}

func TestRootCreateExistingHarmsNothing(t *testing.T) {
	g := create(t, "exist", cgroup.Limits{})
	c := command(leaf(t, g, "1", cgroup.Limits{}), "sleep", "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	if _, err := open(t).Create("exist", cgroup.Limits{}, cgroup.Owner{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want fs.ErrExist", err)
	}
	time.Sleep(scale(50 * time.Millisecond))
	var info unix.Siginfo
	unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if info.Signo != 0 {
		t.Error("the running sandbox was killed")
	}
	if left("exist") == 0 {
		t.Error("the running sandbox's groups were removed")
	}
}

func TestRootNames(t *testing.T) {
	tree := open(t)
	for _, id := range []string{"", ".", "..", "../x", "a/b", "A"} {
		if g, err := tree.Load(id); err == nil || errors.Is(err, fs.ErrNotExist) && id == "" {
			t.Errorf("Load(%q): %v %v", id, g != nil, err)
		}
		if id == "a/b" {
			continue
		}
		if g, err := tree.Create("q/../"+id+"q", cgroup.Limits{}, cgroup.Owner{}); err == nil && id == "" {
			t.Errorf("Create with a path succeeded")
			g.Remove(ctx(t, 5*time.Second))
		}
	}
	g := create(t, "names", cgroup.Limits{})
	for _, id := range []string{"", "..", "../x", "a/b"} {
		if _, err := g.Leaf(id, cgroup.Limits{}); err == nil {
			t.Errorf("Leaf(%q) succeeded", id)
		}
	}
}

func cat(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

func TestRootLimits(t *testing.T) {
	l := cgroup.Limits{Memory: 64 << 20, CPUs: 0.5, PIDs: 20, OOMGroup: true}
	g := create(t, "limits", l)
	leaf(t, g, "1", l)
	for _, sub := range []string{"/x", "/x/1", "/../../" + parent()} {
		dir := parent() + "/limits" + sub + "/"
		for _, f := range [][2]string{{"memory", "memory.max"}, {"memory", "memory.swap.max"}, {"memory", "memory.oom.group"}, {"memory", "memory.limit_in_bytes"},
			{"memory", "memory.memsw.limit_in_bytes"}, {"cpu", "cpu.max"}, {"cpu", "cpu.cfs_quota_us"}, {"pids", "pids.max"}} {
			if s := cat(where(f[0]) + dir + f[1]); !strings.Contains(s, "no such file") {
				t.Logf("%s%s = %s", sub, f[1], s)
			}
		}
	}
}

func TestRootOOM(t *testing.T) {
	g := create(t, "oom", cgroup.Limits{Memory: 256 << 20})
	f := leaf(t, g, "1", cgroup.Limits{Memory: 32 << 20, OOMGroup: true})
	ev, err := f.OOMEvents()
	if err != nil {
		t.Fatal(err)
	}
	c := command(f, "/bin/sh", "-c", `python3 -c 'x=bytearray(200<<20)'; echo parent=$?`)
	out, err := c.Output()
	u, uerr := f.Usage()
	if uerr != nil {
		t.Fatal(uerr)
	}
	t.Logf("%q %v ooms=%d peak=%d", out, err, *u.OOMKills, *u.MemoryPeak)
	if ev != nil {
		p := []unix.PollFd{{Fd: int32(ev.Fd()), Events: unix.POLLIN}}
		n, _ := unix.Poll(p, 0)
		if n != 1 || strings.TrimSpace(string(out)) != "parent=137" {
			t.Error("no event, or group killed on hybrid")
		}
	} else if err == nil {
		t.Error("group not killed")
	}
	if *u.OOMKills < 1 || *u.MemoryPeak > 33<<20 || *u.MemoryPeak < 30<<20 {
		t.Error("numbers")
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
}

func TestRootPIDs(t *testing.T) {
	g := create(t, "pids", cgroup.Limits{PIDs: 100})
	f := leaf(t, g, "1", cgroup.Limits{PIDs: 10})
	command(f, "/bin/sh", "-c", "for i in $(seq 30); do sleep 100 & done; wait").Run()
	u, err := f.Usage()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %v hits %v", p(u.PIDsPeak), p(u.PIDsLimitHits))
	if u.PIDsLimitHits == nil || *u.PIDsLimitHits < 1 || u.PIDsPeak != nil && *u.PIDsPeak != 10 {
		t.Error("numbers")
	}
	start := time.Now()
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	t.Logf("remove busy leaf: %v", time.Since(start))
}

func p(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func TestRootFreeze(t *testing.T) {
	g := create(t, "freeze", cgroup.Limits{})
	f := leaf(t, g, "1", cgroup.Limits{})
	c := command(f, "/bin/sh", "-c", "while :; do :; done")
	c.Start()
	defer c.Wait()
	time.Sleep(scale(20 * time.Millisecond))
	start := time.Now()
	if err := g.Freeze(ctx(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Logf("freeze %v", time.Since(start))
	a, _ := f.Usage()
	time.Sleep(scale(100 * time.Millisecond))
	b, _ := f.Usage()
	if d := *b.CPUUser + *b.CPUSystem - *a.CPUUser - *a.CPUSystem; d > 5*time.Millisecond {
		t.Errorf("used %v while frozen", d)
	}
	if err := g.Thaw(ctx(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(scale(50 * time.Millisecond))
	d, _ := f.Usage()
	if *d.CPUUser == *b.CPUUser {
		t.Error("not thawed")
	}
	if err := g.Freeze(ctx(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if err := f.Remove(); err != nil {
		t.Error("remove frozen leaf:", err)
	}
	t.Logf("remove frozen leaf %v", time.Since(start))
	f2 := leaf(t, g, "2", cgroup.Limits{})
	_ = f2
	if err := g.Remove(ctx(t, 5*time.Second)); err != nil {
		t.Error("remove frozen group:", err)
	}
	if n := left("freeze"); n != 0 {
		t.Errorf("%d directories left", n)
	}
}

func TestRootForkBomb(t *testing.T) {
	g := create(t, "bomb", cgroup.Limits{PIDs: 60})
	f := leaf(t, g, "1", cgroup.Limits{PIDs: 40})
	c := command(f, "/bin/sh", "-c", "b() { b | b & b; }; b")
	c.Start()
	time.Sleep(scale(300 * time.Millisecond))
	start := time.Now()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitEmpty(ctx(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	t.Logf("kill+empty %v", time.Since(start))
	c.Wait()
	if err := g.Remove(ctx(t, 5*time.Second)); err != nil || left("bomb") != 0 {
		t.Error(err, left("bomb"))
	}
}
