package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRefusedCalls covers probes 25, 27, 28, 30, 54: each is refused with an errno that programs take for
// a kernel without it, and the program lives.
func TestRefusedCalls(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, profile := range []string{"default", "strict"} {
			f := attack(t, "calls", append(flags, "--seccomp", profile)...)
			if len(f) < 60 {
				t.Errorf("only %d attempts were made", len(f))
			}
			// F1: libc falls back to clone on ENOSYS only
			for _, name := range []string{"clone3", "number-600", "number-max"} {
				if got := f.take(name); got != "ENOSYS" {
					t.Errorf("%s with profile %s: %s", name, profile, got)
				}
			}
			f.refused(t, "EPERM", "ENOSYS")
		}
	})
}

// TestRefusedSockets covers probes 24, 25, 28, 30.
func TestRefusedSockets(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, profile := range []string{"default", "strict"} {
			f := attack(t, "sockets", append(flags, "--seccomp", profile)...)
			if got := f.take("raw"); got != "EPERM" && got != "EAFNOSUPPORT" {
				t.Errorf("raw socket: %s", got)
			}
			for _, name := range []string{"udp-encap", "tcp-ulp-espintcp", "tcp-ulp-tls"} {
				if got := f.take(name); got != "ENOPROTOOPT" {
					t.Errorf("%s with profile %s: %s", name, profile, got)
				}
			}
			f.refused(t, "EAFNOSUPPORT")
		}
	})
}

// TestForeignABIs covers probe 31: numbers of i386 and x32 do not get past the filter. A kernel without
// i386 answers int 0x80 by SIGSEGV.
func TestForeignABIs(t *testing.T) {
	if string(machine(t)) != "x86_64" {
		return // there is no other ABI that a 64-bit program could switch to
	}
	for _, profile := range []string{"default", "strict"} {
		f := attack(t, "abi", "--seccomp", profile)
		if len(f) != 6 {
			t.Errorf("attempts: %v", f)
		}
		f.refused(t, "ENOSYS", "SIGSEGV")
		for name, got := range f {
			if strings.HasPrefix(name, "x32") && got != "ENOSYS" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

func machine(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("uname", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestTerminalInjection covers probe 32: nothing can be typed into a terminal, not even the sandbox's own.
func TestTerminalInjection(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		dir := probeDir(t)
		args := append(append([]string{"run", "-t", "--bind", dir + ":/probe"}, flags...), "--", "/probe/probe", "terminal")
		f := parseFindings(t, onTerminal(t, args...))
		for name, want := range map[string]string{"tty": "/dev/pts/0", "session": "own"} {
			if got := f.take(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		f.refused(t, "EPERM", "EACCES", "ENOENT", "EROFS", "ENOTTY", "EIO", "OK")
		for name, got := range f {
			if got == "OK" && name != "steal" { // a session leader may take its own terminal again
				t.Errorf("%s: OK", name)
			}
		}
		for _, name := range []string{"TIOCSTI", "TIOCSTI-high", "TIOCLINUX", "TIOCLINUX-high", "TIOCSETD"} {
			if f[name] != "EPERM" {
				t.Errorf("%s: %s, want EPERM", name, f[name])
			}
		}
	})
}

// onTerminal runs husk on a terminal made by script(1), and gives what it printed there.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	quoted := bin
	for _, a := range args {
		quoted += " '" + a + "'"
	}
	cmd := exec.Command("script", "-qec", quoted, "/dev/null")
	cmd.Env = append(os.Environ(), "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", quoted, err, out)
	}
	return strings.ReplaceAll(string(out), "\r", "")
}

// TestFiltersOnTop covers probe 33: no filter, listener or tracer of the program's own opens what ours
// refuses, whether or not refusals are traced.
func TestFiltersOnTop(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, trace := range [][]string{nil, {"--trace-denials"}} {
			f := attack(t, "filters", slices.Concat(flags, trace, []string{"--json"})...)
			if len(f) != 7 {
				t.Errorf("attempts: %v", f)
			}
			f.refused(t, "EPERM", "ENOSYS")
		}
	})
}

// TestThreads covers F1, F3 and the small part of F7: programs fall back, with any profile.
func TestThreads(t *testing.T) {
	const program = `
import threading, ctypes, errno, os
t = threading.Thread(target=print, args=("ok",)); t.start(); t.join()
l = ctypes.CDLL(None, use_errno=True)
def call(*a):
    return "OK" if l.syscall(*a) >= 0 else errno.errorcode[ctypes.get_errno()]
print(call(435, 0, 0), call(425, 1, 0), *sorted({call(n, 0, 0, 0, 0) for n in NUMBERS} - {"OK"}))
print(os.system("exit 3") >> 8)`
	numbers := map[string]string{"x86_64": "(330, 329)", "aarch64": "(289, 288)"}[machine(t)] // pkey_alloc, pkey_mprotect
	for _, profile := range []string{"default", "strict"} {
		o := husk(t, "run", "--seccomp", profile, "--", "python3", "-c", strings.ReplaceAll(program, "NUMBERS", numbers))
		lines := strings.Split(o.stdout, "\n")
		if o.code != 0 || len(lines) != 4 || lines[0] != "ok" || !strings.HasPrefix(lines[1], "ENOSYS EPERM") || lines[2] != "3" {
			t.Errorf("profile %s: exit code %d, stdout %q, stderr %q", profile, o.code, o.stdout, o.stderr)
		}
		// no hardware keys: EINVAL, ENOSPC, ENOSYS; never a kill, never EPERM for what Chromium needs
		if strings.Contains(strings.TrimPrefix(lines[1], "ENOSYS EPERM"), "EPERM") {
			t.Errorf("profile %s: protection keys: %q", profile, lines[1])
		}
		sh(t, "unshare -Ur true", "--seccomp", profile).refusedPlainly(t)
	}
}

// refusedPlainly: the program was told no, and said so itself.
func (o outcome) refusedPlainly(t *testing.T) {
	t.Helper()
	if o.code != 1 || !strings.Contains(o.stderr, "not permitted") && !strings.Contains(o.stderr, "No space") {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
}

// profile writes a seccomp profile that allows all but the named calls.
func profile(t *testing.T, action string, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "profile.json")
	text := fmt.Sprintf(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["%s"],"action":"%s"}]}`, strings.Join(names, `","`), action)
	writeFile(t, path, []byte(text), 0o644)
	return path
}

// TestCustomProfile covers F3: a profile of the caller's own decides about the program, whatever it says.
func TestCustomProfile(t *testing.T) {
	sh(t, "uname >/dev/null && echo fine", "--seccomp", profile(t, "SCMP_ACT_ERRNO", "mkdir", "mkdirat")).want(t, 0, "fine\n")
	sh(t, "mkdir /tmp/x; echo $?", "--seccomp", profile(t, "SCMP_ACT_ERRNO", "mkdir", "mkdirat")).want(t, 0, "1\n")
	r, o := shResult(t, "mkdir /tmp/x", "--seccomp", profile(t, "SCMP_ACT_KILL_PROCESS", "mkdir", "mkdirat"))
	if o.code != 159 && r.ExitCode != 159 { // sh may exec it, or report it
		t.Errorf("killed by the filter: %+v", r)
	}
}

// TestProfileCannotBreakReaper: profiles that refuse what supervision and the start itself need break the
// program alone; its end is reported, and the sandbox goes on.
func TestProfileCannotBreakReaper(t *testing.T) {
	id := create(t)
	try := func(want func(result) bool, file string, program ...string) {
		t.Helper()
		o := husk(t, append([]string{"exec", "--json", "--timeout", "20", "--seccomp", file, id, "--"}, program...)...)
		if r := decode(t, o); !want(r) {
			t.Errorf("%v: exit code %d, %+v", program, o.code, r)
		}
		husk(t, "exec", id, "--", "echo", "still there").want(t, 0, "still there\n")
	}
	exited := func(r result) bool { return r.Reason == "exited" }
	notStarted := func(r result) bool {
		return r.Reason == "not-started" && r.ExitCode == 126 && r.Error != nil && strings.Contains(*r.Error, "not permitted")
	}
	killed := func(r result) bool {
		return r.Reason == "signalled" && r.Signal != nil && *r.Signal == "SIGSYS" && r.ExitCode == 159
	}
	ended := func(r result) bool { return r.Reason == "exited" || r.Reason == "signalled" }
	reaper := []string{"read", "wait4", "waitid", "kill", "ppoll", "poll", "ioctl", "statfs", "rt_sigprocmask"}
	for _, action := range []string{"SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS"} {
		try(ended, profile(t, action, reaper...), "true")
	}
	try(exited, profile(t, "SCMP_ACT_ERRNO", "wait4", "waitid"), "true")
	// without exit the program ends itself as it can: libc goes on to crash on purpose
	try(func(r result) bool { return r.Reason == "signalled" }, profile(t, "SCMP_ACT_ERRNO", "exit_group", "exit"), "true")
	try(killed, profile(t, "SCMP_ACT_KILL_PROCESS", "exit_group", "exit"), "true")
	try(notStarted, profile(t, "SCMP_ACT_ERRNO", "execve", "execveat"), "true")
	try(killed, profile(t, "SCMP_ACT_KILL_PROCESS", "execve"), "true")
	try(killed, profile(t, "SCMP_ACT_TRAP", "execve"), "true")
	// nothing at all is allowed
	path := filepath.Join(t.TempDir(), "nothing.json")
	for _, action := range []string{"SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD"} {
		writeFile(t, path, []byte(`{"defaultAction":"`+action+`"}`), 0o644)
		try(func(r result) bool { return notStarted(r) || killed(r) }, path, "true")
	}
}

// TestMalformedProfile: one line that says what is wrong and where.
func TestMalformedProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.json")
	for text, part := range map[string]string{
		"": "profile", "{": "profile", "[]": "profile", "{}": "defaultAction", `{"defaultAction":"ALLOW"}`: "ALLOW",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["opne"],"action":"SCMP_ACT_ERRNO"}]}`:                      "opne",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["open"],"action":"SCMP_ACT_NOTIFY"}]}`:                     "NOTIFY",
		`{"defaultAction":"SCMP_ACT_ALLOW","sycalls":[]}`:                                                                   "sycalls",
		`{"defaultAction":"SCMP_ACT_ALLOW"} trailing`:                                                                       "after",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["open"],"action":"SCMP_ACT_ERRNO","args":[{"index":9}]}]}`: "index",
		"\x00\xff\xfe": "profile",
	} {
		writeFile(t, path, []byte(text), 0o644)
		husk(t, "run", "--seccomp", path, "--", "true").wantError(t, part)
	}
	husk(t, "run", "--seccomp", filepath.Dir(path), "--", "true").wantError(t, filepath.Dir(path))
	husk(t, "run", "--seccomp", path+".not", "--", "true").wantError(t, path+".not")
	husk(t, "run", "--seccomp", "Default", "--", "true").wantError(t, "Default")
}

// TestTraceDenials: number and name of each refused call, with the default and with a custom profile; the
// program sees the same answers, and at most 64 are listed.
func TestTraceDenials(t *testing.T) {
	r, _ := shResult(t, "unshare -U true; unshare -U true; exit 7", "--trace-denials")
	if r.ExitCode != 7 || len(r.Denials) != 1 || r.Denials[0].Name != "unshare" || r.Denials[0].Count != 2 || r.Denials[0].Number <= 0 {
		t.Errorf("default: %+v", r)
	}
	r, _ = shResult(t, "mkdir /tmp/x; exit 7", "--trace-denials", "--seccomp", profile(t, "SCMP_ACT_ERRNO", "mkdir", "mkdirat"))
	if r.ExitCode != 7 || len(r.Denials) != 1 || !strings.HasPrefix(r.Denials[0].Name, "mkdir") {
		t.Errorf("custom: %+v", r)
	}
	r, _ = shResult(t, "true", "--trace-denials", "--seccomp", "unconfined")
	if r.ExitCode != 0 || len(r.Denials) != 0 {
		t.Errorf("unconfined: %+v", r)
	}
	o := husk(t, "run", "--json", "--trace-denials", "--", "python3", "-c", `
import ctypes
l = ctypes.CDLL(None)
for n in range(1000, 1400): l.syscall(n)
print("done")`)
	if r = decode(t, o); r.Stdout != "done\n" || len(r.Denials) < 1 || len(r.Denials) > 64 {
		t.Errorf("many: %d denials, %+v", len(r.Denials), r.Stdout)
	}
}

// TestTraceDenialsOfExec: what refuses the start itself is traced, too, and does not hang.
func TestTraceDenialsOfExec(t *testing.T) {
	for _, names := range [][]string{{"execve"}, {"wait4", "exit_group", "execve", "exit", "read", "write"}} {
		o := husk(t, "run", "--json", "--timeout", "20", "--trace-denials", "--seccomp", profile(t, "SCMP_ACT_ERRNO", names...), "--", "true")
		r := decode(t, o)
		if r.Reason != "not-started" || r.ExitCode != 126 || o.took > patience(15*time.Second) {
			t.Errorf("%v: after %v: %+v, stderr %q", names, o.took, r, o.stderr)
		}
		if !slices.ContainsFunc(r.Denials, func(d struct {
			Number int    `json:"number"`
			Name   string `json:"name"`
			Count  int64  `json:"count"`
		}) bool {
			return d.Name == "execve"
		}) {
			t.Errorf("%v: denials %+v", names, r.Denials)
		}
	}
}

// TestStrictProfile: less than default, and enough for a compiler's and an interpreter's work.
func TestStrictProfile(t *testing.T) {
	husk(t, "run", "--seccomp", "strict", "--", "python3", "-c", "import subprocess,json;print(subprocess.check_output(['echo','x']))").want(t, 0, "b'x\\n'\n")
	sh(t, "echo a | sed s/a/b/; ls / >/dev/null; sort /etc/passwd | head -n 1 | wc -l", "--seccomp", "strict").want(t, 0, "b\n1\n")
	o := husk(t, "run", "--user", "root", "--seccomp", "strict", "--", "chroot", "/", "true")
	if o.code == 0 {
		t.Error("chroot is allowed")
	}
	husk(t, "run", "--user", "root", "--", "chroot", "/", "true").want(t, 0, "")
}
