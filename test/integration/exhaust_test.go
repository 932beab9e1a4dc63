package integration

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// exhaust runs one group of testdata/exhaust.c and gives its Result; afterwards the sandbox must still
// work, and nothing of it may be left on the host.
func exhaust(t *testing.T, group string, flags ...string) result {
	t.Helper()
	id := create(t, append([]string{"--bind", probeDir(t) + ":/probe"}, flags...)...)
	r := decode(t, husk(t, "exec", "--json", "--timeout", strconv.Itoa(int(patience(20e9).Seconds())), id, "--", "/probe/probe", group))
	husk(t, "exec", id, "--", "echo", "still there").want(t, 0, "still there\n")
	return r
}

// TestForkBomb covers probe 41: processes and threads end at the limit, the host's count does not move.
func TestForkBomb(t *testing.T) {
	for _, group := range []string{"forks", "threads"} {
		r := exhaust(t, group, "--pids", "50")
		f := parseFindings(t, r.Stdout)
		if f["count"] != "49" || f["end"] != "EAGAIN" || r.Reason != "exited" || r.PIDsLimitHits == nil || *r.PIDsLimitHits < 1 {
			t.Errorf("%s: %v, %+v", group, f, r)
		}
	}
	if left := hostProcesses(t, "/probe/probe"); len(left) > 0 {
		t.Errorf("on the host: %d processes", len(left))
	}
	sh(t, "bomb() { bomb | bomb & }; bomb; wait; echo over", "--timeout", "5")
	if o := husk(t, "run", "--", "true"); o.code != 0 {
		t.Errorf("after it: exit code %d, stderr %q", o.code, o.stderr)
	}
}

// TestMemoryBombs covers probe 42: whatever the kind of memory, it ends at the limit.
func TestMemoryBombs(t *testing.T) {
	const limit = 48 << 20
	for _, group := range []string{"heap", "memfd", "shm", "tables", "socket-buffers"} {
		r := exhaust(t, group, "--memory", "48m")
		if r.Reason != "oom" && !strings.Contains(r.Stdout, "end ") {
			t.Errorf("%s: %+v, killed %v", group, r.Reason, r.OOMKills)
		}
		if r.Reason == "oom" && (r.ExitCode != 137 || r.OOMKills == nil || *r.OOMKills < 1) {
			t.Errorf("%s: %+v", group, r)
		}
		if r.MemoryPeak == nil || *r.MemoryPeak > limit || *r.MemoryPeak < limit/4 {
			t.Errorf("%s: peak %v", group, *r.MemoryPeak)
		}
	}
}

// TestDiskBombs covers probe 43: sizes and inodes of every writable place end, deep trees and sparse files
// can be made and go with the sandbox.
func TestDiskBombs(t *testing.T) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/run", "/dev/shm", "/home/sandbox", "/workspace"} {
		r, _ := shResult(t, "head -c 200m /dev/zero >"+dir+"/x 2>/dev/null || echo full; rm "+dir+"/x; "+
			"truncate -s 1T "+dir+"/sparse && echo sparse; echo x >"+dir+"/y && cat "+dir+"/y", "--memory", "128m")
		if r.Stdout != "full\nsparse\nx\n" || r.ExitCode != 0 {
			t.Errorf("%s: %+v", dir, r)
		}
	}
	o := husk(t, "run", "--memory", "128m", "--", "python3", "-c", `
import os
n = 0
try:
    while True: os.close(os.open(f"/tmp/{n}", os.O_CREAT)); n += 1
except OSError as e: print(e.strerror, n < 10000)
os.chdir("/workspace"); depth = 0
try:
    while depth < 5000: os.mkdir("d" * 200); os.chdir("d" * 200); depth += 1
except OSError as e: print(e.strerror)`)
	if o.code != 0 || !strings.HasPrefix(o.stdout, "No space left on device True\n") {
		t.Errorf("exit code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

// TestZombieStorm covers probe 46: process 1 reaps thousands of orphans at a low limit.
func TestZombieStorm(t *testing.T) {
	if f := parseFindings(t, exhaust(t, "zombies", "--pids", "20").Stdout); f["failed"] != "0" {
		t.Errorf("%v", f)
	}
}

// TestQuotas covers probe 48: what is counted per process or user has a bound, and priorities do not rise.
func TestQuotas(t *testing.T) {
	f := parseFindings(t, exhaust(t, "quotas").Stdout)
	number := func(name string, low, high int) {
		if n, err := strconv.Atoi(f[name]); err != nil || n < low || n > high {
			t.Errorf("%s: %q, want %d to %d", name, f[name], low, high)
		}
	}
	number("descriptors", 1000, 1021)
	number("queues", 1, 256)
	number("semaphores", 1, 32000) // of its own IPC namespace, in memory that counts
	for name, want := range map[string]string{"locked": "ENOMEM", "nice": "EACCES", "realtime": "EPERM"} {
		if f[name] != want {
			t.Errorf("%s: %s, want %s", name, f[name], want)
		}
	}
	o := husk(t, "run", "--", "python3", "-c", `
import ctypes
l = ctypes.CDLL(None); n = 0
while n < 100000 and l.inotify_init() >= 0: n += 1
print(n < 1024)`)
	o.want(t, 0, "True\n")
}

// TestOutputFlood covers probe 44: both streams are counted, kept up to the limit, and lost after it.
func TestOutputFlood(t *testing.T) {
	r, _ := shResult(t, "head -c 30m /dev/zero | tr '\\0' a; head -c 30m /dev/zero | tr '\\0' b >&2; exit 4", "--output", "1m")
	if r.ExitCode != 4 || r.StdoutBytes != 30<<20 || r.StderrBytes != 30<<20 || len(r.Stdout) != 1<<20 || len(r.Stderr) != 1<<20 || !r.StdoutTruncated || !r.StderrTruncated {
		t.Errorf("exit code %d, %d and %d bytes, %d and %d kept", r.ExitCode, r.StdoutBytes, r.StderrBytes, len(r.Stdout), len(r.Stderr))
	}
	before := memoryOf(t)
	r, _ = shResult(t, "yes", "--output", "1m", "--timeout", "1")
	if r.Reason != "timeout" || r.StdoutBytes < 1<<20 {
		t.Errorf("%+v, %d bytes", r.Reason, r.StdoutBytes)
	}
	if after := memoryOf(t); after > before+(200<<20) {
		t.Errorf("the host's use of memory went from %d to %d", before, after)
	}
}

// memoryOf is how much memory of the host is not available, in bytes.
func memoryOf(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	f := fieldsOf(string(text))
	kib := func(name string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(f[name], " kB"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return (kib("MemTotal") - kib("MemAvailable")) << 10
}
