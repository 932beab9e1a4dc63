package integration

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// --pids counts the program's processes and threads, its reaper not; forks beyond it fail and are counted.
func TestPIDs(t *testing.T) {
	const fork = `
import os, time
n = 1
try:
    while n < 500:
        if os.fork() == 0: time.sleep(300)
        n += 1
except BlockingIOError: pass
print(n)`
	const threads = `
import threading, time
n = 1
try:
    while n < 500:
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
        n += 1
except RuntimeError: pass
print(n, flush=True)
import os; os._exit(0)`
	type test struct {
		name, script string
		flags        []string
		want         int64
	}
	for _, c := range fewer(2, []test{
		{"processes", fork, []string{"--pids", "20"}, 20},
		{"threads", threads, []string{"--pids", "20"}, 20},
		{"default", fork, nil, 128},
	}) {
		t.Run(c.name, func(t *testing.T) {
			o := husk(t, append(append([]string{"run", "--json"}, c.flags...), "--", "python3", "-c", c.script)...)
			r := decode(t, o)
			if o.code != 0 || r.Stdout != fmt.Sprintf("%d\n", c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %.300q; want %d", o.code, r.Stdout, r.Stderr, c.want)
			}
			if r.PIDsLimitHits == nil || *r.PIDsLimitHits < 1 {
				t.Errorf("pids_limit_hits %v", r.PIDsLimitHits)
			}
			if r.PIDsPeak != nil && *r.PIDsPeak != c.want {
				t.Errorf("pids_peak %d, want %d", *r.PIDsPeak, c.want)
			}
		})
	}
	r, _ := shResult(t, "sleep 0.01 & wait")
	if r.PIDsLimitHits == nil || *r.PIDsLimitHits != 0 {
		t.Errorf("pids_limit_hits %v without any", r.PIDsLimitHits)
	}
	sh(t, "echo one", "--pids", "1").want(t, 0, "one\n")
	for _, n := range fewer(1, []string{"0", "-1", "1.5", "many"}) {
		husk(t, "run", "--pids", n, "--", "true").wantError(t, "pids", n)
	}
}

// B20, B2: every timeout has one meaning; it ends the command near its time.
func TestTimeout(t *testing.T) {
	type test struct {
		timeout string
		code    int
		says    string
	}
	for _, c := range fewer(4, []test{
		{"0.5", 124, "timed out after 500ms"},
		{"none", 0, ""},
		{"0", 125, "none"},
		{"-1", 125, "none"},
		{"-1s", 125, "-1s"},
		{"abc", 125, "abc"},
		{"1e12", 125, "1e12"},
		{"nan", 125, "nan"},
		{"99999999999999999999", 125, "99999999999999999999"},
		{"", 0, ""},
		{"1000000", 0, ""},
		{"2h", 0, ""},
		{"500ms", 124, "timed out after 500ms"},
	}) {
		t.Run(c.timeout, func(t *testing.T) {
			t.Parallel()
			o := sh(t, "echo on; sleep 0.7; [ "+strconv.Itoa(c.code)+" = 0 ] || sleep 60", "--timeout", c.timeout)
			if c.code == 125 {
				o.wantError(t, "timeout", c.says)
				return
			}
			// (the virtual machine may need longer than the time-out to start a shell)
			if o.code != c.code || o.stdout != "on\n" && !(inVM() && c.code == 124) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d", o.code, o.stdout, o.stderr, c.code)
			}
			if !strings.Contains(o.stderr, c.says) || o.took > patience(4*time.Second) {
				t.Errorf("after %v, stderr %q", o.took, o.stderr)
			}
		})
	}
}

// The wall time of a timeout is near it, and the Result has what was written until then.
func TestTimeoutResult(t *testing.T) {
	r, o := shResult(t, "echo out; echo err >&2; sleep 60", "--timeout", "0.5")
	if o.code != 124 || r.Reason != "timeout" || r.ExitCode != 137 || r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("exit code %d, %+v", o.code, r)
	}
	if r.WallSeconds < 0.5 || r.WallSeconds > patience(2*time.Second).Seconds() {
		t.Errorf("wall_seconds %v", r.WallSeconds)
	}
}

// --output-kill ends a command that writes more than --output, whether it is kept or passed through.
func TestOutputKill(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"stdout", "yes"},
		{"stderr", "yes >&2"},
		{"grandchild", "(setsid yes &); sleep 60"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			r, o := shResult(t, c.script, "--output", "64k", "--output-kill", "-e", "MARK="+mark)
			wantNothingLeft(t, mark, r.Sandbox)
			if o.code != 124 || r.Reason != "output-limit" {
				t.Errorf("exit code %d, reason %s", o.code, r.Reason)
			}
			kept, cut := r.Stdout, r.StdoutTruncated
			if c.name == "stderr" {
				kept, cut = r.Stderr, r.StderrTruncated
			}
			if kept != strings.Repeat("y\n", 32<<10) || !cut {
				t.Errorf("kept %d bytes, truncated %v", len(kept), cut)
			}
		})
	}
	o := sh(t, "yes", "--output", "64k", "--output-kill")
	if o.code != 124 || len(o.stdout) < 64<<10 || !strings.Contains(o.stderr, "husk: ended: wrote more than 64KiB (--output)") {
		t.Errorf("exit code %d, %d bytes, stderr %q", o.code, len(o.stdout), o.stderr)
	}
	sh(t, "head -c 65536 /dev/zero | wc -c; head -c 65530 /dev/zero", "--output", "64k", "--output-kill").
		want(t, 0, "65536\n"+strings.Repeat("\x00", 65530)) // exactly the limit is not above it
}

// C10: a full sized mount is ENOSPC to the program and is named in the Result, by space and by inodes.
func TestDiskFull(t *testing.T) {
	id := create(t, "--tmpfs", "/data:size=1m", "--tmpfs", "/few:size=1m,inodes=10", "--tmpfs", "/tmp:size=2m")
	for _, c := range []struct {
		script string
		stdout string
		full   []string
	}{
		{"head -c 1m /dev/zero >/data/f; echo $?", "0\n", []string{"/data"}},
		{"head -c 2m /dev/zero >/data/f; echo $?; stat -c %s /data/f", "1\n1048576\n", []string{"/data"}},
		{"for i in $(seq 20); do touch /few/$i 2>&- || break; done; ls /few | wc -l", "9\n", []string{"/few"}},
		{"head -c 3m /dev/zero >/tmp/f; head -c 3m /dev/zero >/data/f; echo $?", "1\n", []string{"/data", "/tmp"}},
		{"head -c 900k /dev/zero >/data/f; echo $?", "0\n", []string{}},
		{"df -k --output=size /data /tmp | tail -n +2 | xargs", "1024 2048\n", []string{}},
	} {
		r := decode(t, husk(t, "exec", "--json", id, "--", "sh", "-c", c.script))
		slices.Sort(r.DiskFull)
		if r.Stdout != c.stdout || !slices.Equal(r.DiskFull, c.full) || r.Reason != "exited" {
			t.Errorf("%s: %+v", c.script, r)
		}
	}
	// the workspace stays full, and the sandbox usable
	r := decode(t, husk(t, "exec", "--json", id, "--", "sh", "-c", "cat /dev/zero >f; echo $?"))
	if r.Stdout != "1\n" || !slices.Equal(r.DiskFull, []string{"/workspace"}) {
		t.Errorf("%+v", r)
	}
	o := husk(t, "exec", id, "--", "sh", "-c", "echo more >>f")
	if o.code == 0 || !strings.Contains(o.stderr, "husk: no space left on /workspace") {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
	husk(t, "exec", id, "--", "sh", "-c", "rm f; echo more >f; cat f").want(t, 0, "more\n")
}

// C10: on a full disk, sandboxes can be listed and removed, and a new one is one clear error.
func TestStateDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	on := func(args ...string) outcome { return husk(t, append([]string{"--root", disk}, args...)...) }
	o := on("create")
	id := strings.TrimSpace(o.stdout)
	if o.code != 0 {
		t.Fatalf("%+v", o)
	}
	t.Cleanup(func() { on("rm", "-f", id) })
	filler, err := os.Create(disk + "/filler")
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 2 { // to the last byte
		for {
			if _, err := filler.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	filler.Close()
	on("create").wantError(t, "no space left on device", disk)
	on("run", "--", "true").wantError(t, "no space left on device")
	on("exec", id, "--", "echo", "works").want(t, 0, "works\n")
	on("ps", "-q").want(t, 0, id+"\n")
	on("rm", "-f", id).want(t, 0, id+"\n")
	on("ps", "-q").want(t, 0, "")
	if err := os.Remove(disk + "/filler"); err != nil {
		t.Fatal(err)
	}
	on("run", "--", "echo", "again").want(t, 0, "again\n")
}

// Sizes of tmpfs that cannot be are refused, and so is what leaves no memory to run in.
func TestTmpfsBad(t *testing.T) {
	type test struct{ tmpfs, says string }
	for _, c := range fewer(3, []test{
		{"data", "absolute"},
		{"/data:size=0", "size"},
		{"/data:size=-1", "size"},
		{"/data:size=64", "64"},
		{"/data:size=1m,inodes=0", "inodes"},
		{"/data:colour=red", "colour"},
		{"/data:mode=999", "mode"},
		{"/workspace:size=500m", "memory"},
	}) {
		husk(t, "run", "--tmpfs", c.tmpfs, "--", "true").wantError(t, c.says)
	}
	husk(t, "run", "--memory", "1g", "--tmpfs", "/workspace:size=500m", "--", "true").want(t, 0, "")
}

// C13: programs find their limits where they look for them, and cannot change them.
func TestLimitsAreVisible(t *testing.T) {
	id := create(t, "--memory", "256m", "--cpus", "0.5")
	memory, cpu := "/sys/fs/cgroup/memory.max", "cat /sys/fs/cgroup/cpu.max"
	wantCPU := "50000 100000\n"
	if !pureV2(t) {
		memory = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
		cpu, wantCPU = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n100000\n"
	}
	husk(t, "exec", id, "--", "cat", memory).want(t, 0, "268435456\n")
	husk(t, "exec", id, "--", "sh", "-c", cpu).want(t, 0, wantCPU)
	o := husk(t, "exec", id, "--", "cat", "/proc/self/cgroup")
	if !strings.Contains(o.stdout, "0::/\n") {
		t.Errorf("/proc/self/cgroup: %q", o.stdout)
	}
	for _, line := range strings.Split(strings.TrimSpace(o.stdout), "\n") {
		if !strings.HasSuffix(line, ":/") {
			t.Errorf("/proc/self/cgroup shows more than itself: %q", line)
		}
	}
	o = husk(t, "exec", id, "--", "sh", "-c", "echo 1000000000 >"+memory)
	if o.code == 0 {
		t.Error("a program wrote its own memory limit")
	}
	// an execution's own, lower limits are what it sees
	husk(t, "exec", "--memory", "128m", id, "--", "cat", memory).want(t, 0, "134217728\n")
}

// C13 with Node.js, which sizes its heap by the limit.
func TestLimitsAreVisibleToNode(t *testing.T) {
	heavy(t, "Node.js")
	o := husk(t, "run", "--memory", "256m", "--", "node", "-e", "console.log(require('v8').getHeapStatistics().heap_size_limit)")
	heap, err := strconv.ParseInt(strings.TrimSpace(o.stdout), 10, 64)
	if o.code != 0 || err != nil || heap > 300<<20 {
		t.Errorf("exit code %d, heap limit %q, stderr %.300q", o.code, o.stdout, o.stderr)
	}
}

// C13 with a JVM, which takes a quarter of the limit by default.
func TestLimitsAreVisibleToJava(t *testing.T) {
	heavy(t, "JVM")
	o := husk(t, "run", "--memory", "512m", "--", "java", "-XshowSettings:system", "-XX:+PrintFlagsFinal", "-version")
	if o.code != 0 || !strings.Contains(o.stderr+o.stdout, "Memory Limit: 512.00M") {
		t.Errorf("exit code %d, %.500q", o.code, o.stderr)
	}
	for _, line := range strings.Split(o.stdout, "\n") {
		f := strings.Fields(line)
		if len(f) < 4 || f[1] != "MaxHeapSize" {
			continue
		}
		if heap, err := strconv.ParseInt(f[3], 10, 64); err != nil || heap > 256<<20 {
			t.Errorf("heap of %s bytes", f[3])
		}
	}
}

// An execution's limits are below its sandbox's, never above.
func TestLimitsOfExecution(t *testing.T) {
	id := create(t, "--memory", "128m", "--cpus", "1", "--pids", "50")
	for _, c := range []struct{ flag, value, says string }{
		{"--memory", "129m", "128MiB"}, {"--memory", "unlimited", "128MiB"}, {"--cpus", "1.5", "1"}, {"--pids", "51", "50"},
	} {
		husk(t, "exec", c.flag, c.value, id, "--", "true").wantError(t, c.says)
	}
	r := decode(t, husk(t, "exec", "--json", "--memory", "32m", id, "--", "python3", "-c", hog))
	if r.Reason != "oom" || r.MemoryPeak != nil && *r.MemoryPeak > 32<<20 {
		t.Errorf("%+v", r)
	}
	r = decode(t, husk(t, "exec", "--json", "--pids", "3", id, "--", "sh", "-c", "sleep 1 & sleep 1 & sleep 1 & sleep 1"))
	if r.ExitCode == 0 || r.PIDsLimitHits == nil || *r.PIDsLimitHits < 1 {
		t.Errorf("%+v", r)
	}
}

// Two executions at once share what the sandbox may have.
func TestLimitsOfSandboxAreShared(t *testing.T) {
	id, mark := create(t, "--memory", "64m"), newMark(t)
	begin(t, nil, "exec", "-e", "MARK="+mark, id, "--", "python3", "-c", "x=bytearray(40<<20)\nimport time; print('up', flush=True); time.sleep(300)")
	eventually(t, 10*time.Second, "40 MiB are taken", func() bool {
		used, _ := strconv.ParseInt(groupFile(t, id, "memory.current", "memory", "memory.usage_in_bytes"), 10, 64)
		return used > 40<<20
	})
	r := decode(t, husk(t, "exec", "--json", id, "--", "sh", "-c", "python3 -c 'x=bytearray(40<<20); print(len(x))'; echo $?"))
	second := r.Stdout == "137\n"
	first := len(holders(mark)) == 0
	if !first && !second {
		t.Errorf("80 MiB fit into 64 MiB: %+v", r)
	}
}
