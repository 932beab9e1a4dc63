package seccomp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary install a filter, which it reads from descriptor 3, and then do
// something under it: "probe" makes the calls on stdin, "exec" runs its arguments.
const helperEnv = "HUSK_SECCOMP_TEST_HELPER"

func TestMain(m *testing.M) {
	mode := os.Getenv(helperEnv)
	if mode == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(helperEnv)
	if err := helper(mode); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}

func helper(mode string) error {
	filter, err := io.ReadAll(os.NewFile(3, "filter"))
	if err != nil {
		return err
	}
	if err := install(filter); err != nil {
		return err
	}
	if mode == "exec" {
		return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c probe
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		_, _, errno := unix.RawSyscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
		fmt.Println(int(errno))
	}
	return lines.Err()
}

// install puts the filter on all threads.
func install(filter []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if len(filter) == 0 {
		return nil
	}
	prog := unix.SockFprog{Len: uint16(len(filter) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	const mode, flags = 1, 1 // SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, mode, flags, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("install filter of %d instructions: %w", prog.Len, errno)
	}
	return nil
}

// probe is a call to make and what it must answer.
type probe struct {
	Name string
	Nr   uintptr
	Args [6]uintptr
	want syscall.Errno
}

func kernelProbes() []probe {
	noFamily := unix.EAFNOSUPPORT
	args := func(a ...uintptr) (out [6]uintptr) { copy(out[:], a); return out }
	const bad = 1 // an address that is not mapped
	return []probe{
		{"clone3", unix.SYS_CLONE3, args(bad, 88), unix.ENOSYS},
		{"clone NEWUSER", unix.SYS_CLONE, args(unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)), unix.EPERM},
		{"unshare NEWUSER", unix.SYS_UNSHARE, args(unix.CLONE_NEWUSER), unix.EPERM},
		{"unshare NEWNET", unix.SYS_UNSHARE, args(unix.CLONE_NEWNET), unix.EPERM},
		{"setns", unix.SYS_SETNS, args(999), unix.EPERM},
		{"AF_ALG", unix.SYS_SOCKET, args(unix.AF_ALG, unix.SOCK_SEQPACKET), noFamily},
		{"AF_ALG with high bits", unix.SYS_SOCKET, args(unix.AF_ALG|1<<32, unix.SOCK_SEQPACKET), noFamily},
		{"AF_VSOCK", unix.SYS_SOCKET, args(unix.AF_VSOCK, unix.SOCK_STREAM), noFamily},
		{"NETLINK_XFRM", unix.SYS_SOCKET, args(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM), noFamily},
		{"NETLINK_NETFILTER", unix.SYS_SOCKET, args(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), noFamily},
		{"AF_PACKET", unix.SYS_SOCKET, args(unix.AF_PACKET, unix.SOCK_RAW), noFamily},
		{"AF_INET", unix.SYS_SOCKET, args(unix.AF_INET, unix.SOCK_STREAM), 0},
		{"AF_UNIX", unix.SYS_SOCKET, args(unix.AF_UNIX, unix.SOCK_STREAM), 0},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, args(1, bad), unix.EPERM},
		{"keyctl", unix.SYS_KEYCTL, args(0, ^uintptr(2)), unix.EPERM},
		{"add_key", unix.SYS_ADD_KEY, args(bad, bad), unix.EPERM},
		{"bpf", unix.SYS_BPF, args(0, bad, 8), unix.EPERM},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, args(bad), unix.EPERM},
		{"userfaultfd", unix.SYS_USERFAULTFD, args(unix.O_CLOEXEC), unix.EPERM},
		{"mount", unix.SYS_MOUNT, args(bad, bad), unix.EPERM},
		{"fsopen", unix.SYS_FSOPEN, args(bad), unix.EPERM},
		{"statmount", unix.SYS_STATMOUNT, args(bad), unix.ENOSYS},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, args(bad), unix.EPERM},
		{"TIOCSTI", unix.SYS_IOCTL, args(0, unix.TIOCSTI, bad), unix.EPERM},
		{"TIOCSTI with high bits", unix.SYS_IOCTL, args(0, 0xdead<<32|unix.TIOCSTI, bad), unix.EPERM},
		{"TIOCLINUX with high bits", unix.SYS_IOCTL, args(0, 1<<32|0x541c, bad), unix.EPERM},
		{"TCGETS of a pipe", unix.SYS_IOCTL, args(0, unix.TCGETS, bad), unix.ENOTTY},
		{"a call of the future", 900, args(), unix.ENOSYS},
		{"close", unix.SYS_CLOSE, args(999), unix.EBADF},
	}
}

// TestKernelAnswers installs filters and asks the kernel. Run as root it means more: there is no
// other reason then for EPERM.
func TestKernelAnswers(t *testing.T) {
	for _, p := range []Profile{Default(), Strict()} {
		probes := kernelProbes()
		for i, errno := range answers(t, p, probes) {
			if errno != probes[i].want {
				t.Errorf("%s: %s: %v, want %v", p.Name(), probes[i].Name, errno, probes[i].want)
			}
		}
	}
}

// TestKernelAnswersWithoutFilter shows that what the test above sees is the filter's doing.
func TestKernelAnswersWithoutFilter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the kernel refuses some of the calls itself without root")
	}
	var probes []probe
	for _, p := range kernelProbes() {
		// Not those that would change something, or that a kernel may be built without.
		if p.want == unix.EPERM && !strings.HasPrefix(p.Name, "clone") && !strings.HasPrefix(p.Name, "unshare") {
			probes = append(probes, p)
		}
	}
	for i, errno := range answers(t, Unconfined(), probes) {
		if errno == unix.EPERM {
			t.Errorf("%s: EPERM without a filter", probes[i].Name)
		}
	}
}

func answers(t *testing.T, p Profile, probes []probe) []syscall.Errno {
	t.Helper()
	var in strings.Builder
	for _, c := range probes {
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	cmd := confined(t, "probe", p, Options{}, "probe")
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("probe: %v\n%s", err, cmd.Stderr)
	}
	var errnos []syscall.Errno
	for _, line := range strings.Fields(string(out)) {
		var n int
		if _, err := fmt.Sscan(line, &n); err != nil {
			t.Fatal(err)
		}
		errnos = append(errnos, syscall.Errno(n))
	}
	if len(errnos) != len(probes) {
		t.Fatalf("%d answers to %d calls", len(errnos), len(probes))
	}
	return errnos
}

// confined prepares the helper under a profile.
func confined(t *testing.T, mode string, p Profile, o Options, args ...string) *exec.Cmd {
	t.Helper()
	program, err := p.Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "filter")
	if err := os.WriteFile(file, program.Filter, 0o600); err != nil {
		t.Fatal(err)
	}
	filter, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { filter.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{self}, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	cmd.WaitDelay = time.Minute
	cmd.ExtraFiles = []*os.File{filter}
	cmd.Dir = t.TempDir()
	cmd.Stderr = &strings.Builder{}
	return cmd
}

// TestKernelSetID gives files set-id bits, or tries to, in every way there is.
func TestKernelSetID(t *testing.T) {
	script := `
import os, sys, errno
def refused(what, f):
    try: f()
    except OSError as e:
        if e.errno == errno.EPERM: return
    print("not refused:", what); sys.exit(1)
open("f", "w").close()
refused("chmod", lambda: os.chmod("f", 0o4755))
refused("setgid", lambda: os.chmod("f", 0o2755))
refused("fchmod", lambda: os.fchmod(os.open("f", os.O_RDONLY), 0o4755))
refused("fchmodat", lambda: os.chmod("f", 0o4755, dir_fd=os.open(".", os.O_RDONLY)))
refused("create", lambda: os.open("g", os.O_CREAT|os.O_WRONLY, 0o4755))
refused("tmpfile", lambda: os.open(".", os.O_TMPFILE|os.O_WRONLY, 0o4755))
refused("mknod", lambda: os.mknod("h", 0o104755))
os.chmod("f", 0o755); os.mknod("p", 0o10600); os.open("i", os.O_CREAT|os.O_WRONLY, 0o644)
os.umask(0); os.mkdir("d", 0o6777)
assert os.stat("d").st_mode & 0o6000 == 0, "mkdir keeps set-id bits"
print("ok")`
	for _, p := range []Profile{Default(), Strict(), Unconfined()} {
		expectOK(t, confinedProgram(t, p, Options{NoSetID: true}, "python3", "-c", script))
	}
}

// TestProgramsWork runs what people run in sandboxes.
func TestProgramsWork(t *testing.T) {
	programs := []struct{ name, program, script string }{
		{"python threads", "python3", `import threading, subprocess, socket, multiprocessing, tempfile
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.check_output(["sh", "-c", "echo hi"]) == b"hi\n"
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); c.close()
q = multiprocessing.Queue(); p = multiprocessing.Process(target=q.put, args=(1,)); p.start(); assert q.get() == 1; p.join()
tempfile.TemporaryDirectory().cleanup()
print("ok")`},
		{"node", "node", `const fs = require("fs"), { Worker } = require("worker_threads"), cp = require("child_process");
fs.readFile("/etc/passwd", () => { new Worker("0", { eval: true }).on("exit", () => {
  cp.execFile("true", () => console.log("ok")) }) })`},
		{"gcc", "sh", `printf '#include <stdio.h>\nint main(void){puts("ok");return 0;}' > a.c && gcc -O2 -pipe a.c -o a && ./a`},
		{"java", "sh", `printf 'class A { public static void main(String[] a) throws Exception {
var t = new Thread(() -> {}); t.start(); t.join(); new java.net.ServerSocket(0).close(); System.out.println("ok"); } }' > A.java && java A.java`},
		{"go", "sh", `printf 'package main\nfunc main() { println("ok") }' > a.go && go run a.go 2>&1`},
		{"shell", "sh", `mkfifo p && (echo ok > p &) && cat p | tr -d x`},
	}
	for _, p := range []Profile{Default(), Strict()} {
		for _, c := range programs {
			t.Run(p.Name()+"/"+c.name, func(t *testing.T) {
				if c.program == "sh" && c.name != "shell" {
					lookPath(t, c.name)
					if testing.Short() || os.Getenv("HUSK_VM") == "1" && p != Strict() {
						t.Skip("heavy: compilers and a JVM once in a virtual machine")
					}
				}
				flag := map[string]string{"node": "-e"}[c.program]
				if flag == "" {
					flag = "-c"
				}
				expectOK(t, confinedProgram(t, p, Options{}, c.program, flag, c.script))
			})
		}
	}
}

func confinedProgram(t *testing.T, p Profile, o Options, args ...string) *exec.Cmd {
	t.Helper()
	return confined(t, "exec", p, o, append([]string{lookPath(t, args[0])}, args[1:]...)...)
}

func expectOK(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %q\n%s", err, out, cmd.Stderr)
	}
}

// lookPath finds a program, or skips the test.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}
