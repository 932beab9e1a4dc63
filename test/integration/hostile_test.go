package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func hashOf(t *testing.T, path string) [32]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(text)
}

// TestOverwriteRuntime covers probe 1: no program can get at our binary through /proc, nor at process 1
// as an interpreter.
func TestOverwriteRuntime(t *testing.T) {
	before := hashOf(t, bin)
	asUsers(t, func(t *testing.T, flags ...string) {
		f := attack(t, "executable", flags...)
		if f.take("done") != "OK" {
			t.Error("the probe did not get to its end")
		}
		f.refused(t)
		dir := probeDir(t)
		writeFile(t, filepath.Join(dir, "entry"), []byte("#!/proc/self/exe\n"), 0o755)
		for _, program := range []string{"/probe/entry", "/proc/self/exe"} {
			o := husk(t, append(append([]string{"run", "--timeout", "20", "--bind", dir + ":/probe"}, flags...), "--", program)...)
			if o.code == 0 || o.code == 124 || o.stdout != "" {
				t.Errorf("%s: exit code %d, stdout %q", program, o.code, o.stdout)
			}
		}
		// husk itself, run inside: it is a program like any other
		o := husk(t, append(append([]string{"run", "--bind", bin + ":/probe"}, flags...), "--", "/probe", "run", "--", "true")...)
		if o.code != 125 {
			t.Errorf("husk inside: exit code %d, stderr %q", o.code, o.stderr)
		}
	})
	if hashOf(t, bin) != before {
		t.Error("our binary was changed")
	}
}

// TestOversizedRequests covers probe 10: too long is an error of ours, not a cut or an overflow.
func TestOversizedRequests(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for what, flags := range map[string][]string{
		"work dir": {"-w", "/" + long}, "bind": {"--bind", "/usr:/" + long}, "source": {"--bind", "/" + long + ":/x"},
		"tmpfs": {"--tmpfs", "/" + long}, "hostname": {"--hostname", long}, "name": {"--name", long}, "user": {"--user", long},
		"seccomp": {"--seccomp", long}, "component": {"--tmpfs", "/" + long[:300]}, "target": {"--tmpfs", "/" + strings.Repeat("b/", 300)},
	} {
		o := husk(t, append(append([]string{"run"}, flags...), "--", "true")...)
		if o.code != 125 || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %d lines on stderr: %.300q", what, o.code, strings.Count(o.stderr, "\n"), o.stderr)
		}
	}
	var many []string
	for i := range 60 {
		many = append(many, "--tmpfs", fmt.Sprintf("/many/%d:size=1m", i))
	}
	o := husk(t, append(append([]string{"run"}, many...), "--", "sh", "-c", "grep -c /many/ /proc/mounts")...)
	if o.stdout != "60\n" && (o.code != 125 || strings.Count(o.stderr, "\n") != 1) {
		t.Errorf("60 tmpfs: exit code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

// TestUserText covers probe 11: never uid 0 unless asked.
func TestUserText(t *testing.T) {
	for _, user := range []string{
		"+0", " 0", "0 ", "-0", "00x", "0x0", "1000:", ":0", ":", "0:+0", "65536", "4294967295", "4294967296", "18446744073709551616",
		"Root", "root ", "sandbox:", "1000:0:0", "1e3", "0\n", "０",
	} {
		o := husk(t, "run", "--user", user, "--", "id", "-u")
		o.wantError(t, "user")
	}
	for user, want := range map[string]string{"root": "0:0", "0": "0:0", "1000": "1000:1000", "sandbox": "1000:1000", "7:8": "7:8", "65535": "65535:65535", "nobody": "65534:65534"} {
		o := sh(t, "echo $(id -u):$(id -g):$(id -G)", "--user", user)
		o.want(t, 0, want+":"+want[strings.Index(want, ":")+1:]+"\n")
	}
	// nobody asked at all
	husk(t, "run", "--user", "", "--", "id", "-u").want(t, 0, "1000\n")
}

// TestStateDirectoryOfOthers covers probe 12: links that somebody else planted where husk keeps its
// state do not lead it elsewhere.
func TestStateDirectoryOfOthers(t *testing.T) {
	canary := t.TempDir()
	writeFile(t, filepath.Join(canary, "file"), []byte(canaryText), 0o644)
	for _, link := range []string{"root/sandboxes", "root/names", "root/version", "run/ids", "run/cpus"} {
		dir := t.TempDir()
		for _, name := range []string{"root", "run"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(dir, name), 4711, 4711); err != nil {
				t.Fatal(err)
			}
		}
		target := canary
		if link == "root/version" {
			target = filepath.Join(canary, "file")
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		before := treeOf(t, canary)
		o := husk(t, "--root", dir+"/root", "--run", dir+"/run", "run", "--name", "x", "--", "true")
		o.wantError(t, dir, "others may write")
		sameTree(t, before, treeOf(t, canary))
	}
}

// TestRemount covers probes 14, 19, 27, 29: nothing that is mounted can be undone, and nothing mounted;
// with the filter, and by the kernel alone.
func TestRemount(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, profile := range []string{"default", "strict", "unconfined"} {
			f := attack(t, "mounts", append(flags, "--seccomp", profile)...)
			f.refused(t, "EPERM", "EACCES", "EROFS", "ENOENT", "ENOSPC", "ENOSYS")
			if len(f) < 30 {
				t.Errorf("only %d attempts were made: %v", len(f), f)
			}
		}
	})
}

// TestReadOnlyPages covers probes 24 and 26: bytes of files that may only be read stay what they are, on
// the host and in another sandbox.
func TestReadOnlyPages(t *testing.T) {
	f := attack(t, "dirty") // compares the canary
	if f.take("splice") != "OK" || f.take("write") != "OK" {
		t.Error("the probe did not get as far as writing to the pipe")
	}
	delete(f, "fill")
	delete(f, "drain")
	f.refused(t, "EROFS", "EACCES", "EPERM")
	if got := f["create"]; got != "EROFS" && got != "EACCES" {
		t.Errorf("create: %s", got)
	}
}

// TestSetIDPrograms covers probe 29 and F5: a set-user-ID file and one with capabilities give nothing.
func TestSetIDPrograms(t *testing.T) {
	const caps = "\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"
	dir := probeDir(t)
	writeFile(t, filepath.Join(dir, "setuid"), compileProbe(t), 0o6755)
	writeFile(t, filepath.Join(dir, "capable"), compileProbe(t), 0o755)
	if err := syscall.Setxattr(filepath.Join(dir, "capable"), "security.capability", []byte(caps), 0); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"setuid", "capable"} {
		for _, how := range [][]string{{"/probe/" + program, "privileges"}, {"sh", "-c", "/probe/" + program + " privileges"}} {
			o := husk(t, append([]string{"run", "--bind", dir + ":/probe", "--"}, how...)...)
			if o.code == 126 && strings.Contains(o.stderr, "ermitted") {
				continue // not executed is fine too
			}
			f := parseFindings(t, o.stdout)
			if f["uid"] != "1000-1000-1000" || f["setuid"] != "EPERM" || f["NoNewPrivs"] != "1" || f["CapEff"] != "0000000000000000" || f["CapPrm"] != "0000000000000000" {
				t.Errorf("%v: %v, exit code %d", how, f, o.code)
			}
		}
	}
	// the host's own: su, and whatever else is there
	o := sh(t, `find /usr/bin -perm -4000 | head -n 20; su -c id </dev/null; id -u`)
	if !strings.HasSuffix(o.stdout, "1000\n") || strings.Contains(o.stdout, "uid=0") {
		t.Errorf("stdout %q, stderr %q", o.stdout, o.stderr)
	}
}

// TestMountDestinationRace covers probes 5, 7, 8: while a bind's destination is swapped for a link to
// the host's files, sandboxes start or do not, and nothing outside changes.
func TestMountDestinationRace(t *testing.T) {
	canary := t.TempDir()
	writeFile(t, filepath.Join(canary, "file"), []byte(canaryText), 0o644)
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "mark"), []byte("mounted\n"), 0o644)
	shared := ownedDir(t, 4711, 4711)
	stop := swapForLink(t, shared, canary)
	before, etc := treeOf(t, canary), treeOf(t, "/etc/alternatives")
	started := 0
	for i := range rounds(30) {
		dst := []string{"/shared/swap/deep/er", "/shared/swap", "/shared/swap/file"}[i%3]
		// the sandbox's /proc and /etc are what the link leads to, inside
		o := sh(t, "cat "+dst+"/mark; cat /etc/hostname >/dev/null; cat /proc/self/attr/current >/dev/null 2>&1; grep -c . /proc/self/status >/dev/null",
			"--bind", shared+":/shared:rw", "--bind", source+":"+dst)
		if o.code == 0 {
			started++
			if o.stdout != "mounted\n" && o.stdout != "" {
				t.Errorf("stdout %q", o.stdout)
			}
		} else if o.code == 125 && strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
		}
	}
	stop()
	sameTree(t, before, treeOf(t, canary))
	sameTree(t, etc, treeOf(t, "/etc/alternatives"))
	t.Logf("%d sandboxes started", started)
}

// swapForLink swaps dir/swap between a directory and a link to target until the returned function is
// called.
func swapForLink(t *testing.T, dir, target string) (stop func()) {
	t.Helper()
	at, real, link := filepath.Join(dir, "swap"), filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.Mkdir(real, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !done.Load() {
			_ = os.Rename(link, at)
			time.Sleep(200 * time.Microsecond)
			_ = os.Rename(at, link)
			_ = os.Rename(real, at)
			time.Sleep(200 * time.Microsecond)
			_ = os.Rename(at, real)
		}
	}()
	return func() { done.Store(true); <-ended }
}

// TestDaemonsDie covers probe 45: whatever an execution left is gone from the host when it ends.
func TestDaemonsDie(t *testing.T) {
	dir := probeDir(t)
	mark := filepath.Base(filepath.Dir(dir)) + "-daemons"
	if err := os.Rename(filepath.Join(dir, "probe"), filepath.Join(dir, mark)); err != nil {
		t.Fatal(err)
	}
	o := husk(t, "run", "--bind", dir+":/probe", "--", "/probe/"+mark, "daemons")
	o.want(t, 0, "started OK\n")
	if left := hostProcesses(t, mark); len(left) > 0 {
		t.Errorf("on the host: %q", left)
	}
	id := create(t, "--bind", dir+":/probe")
	husk(t, "exec", id, "--", "/probe/"+mark, "daemons").want(t, 0, "started OK\n")
	// the last of them is being torn down while the result is on its way
	eventually(t, 5*time.Second, "all daemons are gone", func() bool { return len(hostProcesses(t, mark)) == 0 })
}

// TestCoreDump covers probe 47: a crash leaves no file, and starts no handler of the host's.
func TestCoreDump(t *testing.T) {
	dir, shared := probeDir(t), ownedDir(t, 4711, 4711)
	handled := filepath.Join(t.TempDir(), "handled")
	if inVM() { // nobody else's machine: the handler may be ours
		pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(filepath.Dir(handled), "handler")
		writeFile(t, script, []byte("#!/bin/sh\necho called >"+handled+"\n"), 0o755)
		if err := os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|"+script), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.WriteFile("/proc/sys/kernel/core_pattern", pattern, 0o644) })
	}
	o := husk(t, "run", "--bind", dir+":/probe", "--bind", shared+":/workspace:rw", "--", "/probe/probe", "crash")
	o.want(t, 134, "")
	if files, _ := os.ReadDir(shared); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	if _, err := os.Stat(handled); err == nil {
		t.Error("the host's core handler was started")
	}
	// the limit is 1, since 0 does not stop a handler, and cannot be raised
	sh(t, "ulimit -Hc; ulimit -c unlimited 2>/dev/null; grep 'core file' /proc/self/limits | tr -s ' '").want(t, 0, "0\nMax core file size 1 1 bytes \n")
}

// TestSandboxesApart covers probes 49 and 50: shared memory, queues, locks, abstract sockets and
// processes of one sandbox do not exist in another.
func TestSandboxesApart(t *testing.T) {
	const serve = `import socket, os, time
from multiprocessing import shared_memory
s = socket.socket(socket.AF_UNIX); s.bind("\0husk-canary"); s.listen()
m = shared_memory.SharedMemory("canary", create=True, size=4096)
open("/tmp/canary", "w").write("x"); open("/workspace/canary", "w").write("x")
print("ready", flush=True); time.sleep(600)`
	one, two := create(t, "--scope", "sandbox"), create(t, "--scope", "sandbox")
	background(t, "ready\n", "exec", one, "--", "python3", "-c", serve)
	const look = `import socket, os
s = socket.socket(socket.AF_UNIX)
try: s.connect("\0husk-canary"); print("connected")
except OSError as e: print(e.strerror)
print(os.listdir("/dev/shm"), os.path.exists("/tmp/canary"), os.path.exists("/workspace/canary"), open("/proc/net/unix").read().count("canary"))
print(len([p for p in os.listdir("/proc") if p.isdigit()]))`
	husk(t, "exec", two, "--", "python3", "-c", look).want(t, 0, "Connection refused\n[] False False 0\n2\n")
	husk(t, "run", "--", "python3", "-c", look).want(t, 0, "Connection refused\n[] False False 0\n2\n")
	// in the same sandbox they do, but for its processes
	o := husk(t, "exec", one, "--", "python3", "-c", look)
	if !strings.HasPrefix(o.stdout, "connected\n['canary'] True True ") || !strings.HasSuffix(o.stdout, "\n2\n") {
		t.Errorf("in the same sandbox: %q, stderr %q", o.stdout, o.stderr)
	}
}

// background starts husk, waits until it printed ready, and ends it with the test.
func background(t *testing.T, ready string, args ...string) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var out safeBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, 20*time.Second, fmt.Sprintf("husk %q says %q", args, ready), func() bool { return strings.Contains(out.String(), ready) })
}

// TestLocksApart covers probe 50: a lock on a file of the base, taken in one sandbox, is at most seen
// where the file itself is shared, which is documented; one that is made on tmpfs is not.
func TestLocksApart(t *testing.T) {
	one := create(t)
	background(t, "ready\n", "exec", one, "--", "flock", "/workspace/lock", "sh", "-c", "echo ready; sleep 600")
	sh(t, "flock -n /workspace/lock echo free").want(t, 0, "free\n")
	husk(t, "exec", one, "--", "flock", "-n", "/workspace/lock", "echo", "free").want(t, 1, "")
}

// TestLeaks covers probe 51: other processes, mounts and names of the host are not to be seen.
func TestLeaks(t *testing.T) {
	secret := "canary-" + filepath.Base(t.TempDir()) + "-argument"
	cmd := exec.Command("sh", "-c", "read x; exit 0", secret)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if len(hostProcesses(t, secret)) == 0 {
		t.Fatal("the host does not see its own canary")
	}
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `cat /proc/*/cmdline /proc/*/environ /proc/*/mountinfo 2>/dev/null | tr '\0' '\n'; ls -d /sys/*; ls /proc`, flags...)
		for _, text := range []string{secret, "/sys/class", "/sys/firmware", "/sys/kernel", "/root/"} {
			if strings.Contains(o.stdout, text) {
				t.Errorf("%q is seen inside", text)
			}
		}
		pids := 0
		for line := range strings.Lines(o.stdout) {
			if line[0] >= '1' && line[0] <= '9' && !strings.ContainsAny(line, " ") {
				pids++
			}
		}
		if pids > 4 {
			t.Errorf("%d processes are seen", pids)
		}
	})
}

// TestHostUnharmed: what privileged programs inside try against the host's own settings stays without
// effect there.
func TestHostUnharmed(t *testing.T) {
	settings := []string{"/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/etc/passwd", "/etc/hosts"}
	read := func() (all [][]byte) {
		for _, path := range settings {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return all
	}
	before := read()
	for _, profile := range []string{"default", "unconfined"} {
		sh(t, `for f in `+strings.Join(settings, " ")+`; do echo hacked >$f; done; hostname hacked; echo hacked >/etc/passwd; mount -t tmpfs x /etc; kill -9 -1`,
			"--user", "root", "--seccomp", profile)
	}
	if after := read(); !slices.EqualFunc(before, after, bytes.Equal) {
		t.Errorf("settings of the host were %q and are %q", before, after)
	}
}
