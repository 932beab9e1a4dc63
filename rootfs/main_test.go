package rootfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// testBase is the first host id of the tests' sandboxes.
const testBase = 700_000

// requireRoot skips, but fails in the virtual machine, where everything must run.
func requireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("HUSK_VM") != "" {
		t.Fatal("not root in the virtual machine")
	}
	t.Skip("needs root")
}

// private gives the test's thread a mount namespace of its own, until the test's temporary directories
// are removed: that happens on this thread, and would go on into whatever is still bound in them, which
// may be the host's. Not for tests that go on in a subtest, which has another thread.
func private(t testing.TB) {
	t.Helper()
	requireRoot(t)
	runtime.LockOSThread()
	host, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	t.TempDir() // what is registered after its removal comes before it
	t.Cleanup(func() {
		if err := unix.Setns(int(host.Fd()), unix.CLONE_NEWNS); err != nil {
			panic(err) // nothing may be removed now
		}
		host.Close()
	})
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make mounts private: %v", err)
	}
}

// TestRootPrivate: a bind that a test leaves in its temporary directory is not emptied with that.
func TestRootPrivate(t *testing.T) {
	requireRoot(t)
	canary := t.TempDir() + "/canary"
	writeFile(t, canary, "")
	t.Run("test", func(t *testing.T) {
		private(t)
		if err := unix.Mount(filepath.Dir(canary), openDir(t), "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Lstat(canary); err != nil {
		t.Error(err)
	}
}

// openDir is a temporary directory that mapped users can reach.
func openDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// testPlan is a plan for a temporary Target and Dev; what is mounted there goes before they do.
func testPlan(t testing.TB) Plan {
	t.Helper()
	dir := openDir(t)
	p := Plan{
		Target: dir + "/root", Dev: dir + "/dev", Base: BaseHost, Hostname: "box",
		IDs:  IDs{UIDBase: testBase, GIDBase: testBase, Size: 65536},
		User: User{UID: 1000, GID: 1000, Name: "sandbox", Home: "/home/sandbox"},
	}
	for _, d := range []string{p.Target, p.Dev} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { unmount(p) })
	return p
}

func unmount(p Plan) {
	for _, dir := range []string{p.Target, p.Dev} {
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
		}
	}
}

func assemble(t testing.TB, p Plan) Result {
	t.Helper()
	r, err := Assemble(p)
	if err != nil {
		t.Fatalf("assemble: %v", err)
	}
	return r
}

// tryInside runs a program in an assembled root as an id of the sandbox without capabilities.
func tryInside(p Plan, uid int, args ...string) (string, error) {
	for from, to := range map[string]string{p.Dev: "/dev", "/proc": "/proc"} {
		if err := unix.Mount(from, p.Target+to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return "", err
		}
		defer func() { _ = unix.Unmount(p.Target+to, unix.MNT_DETACH) }()
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Path, cmd.Err = args[0], nil
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin", "HOME=/tmp", "GOCACHE=/tmp/gocache", "GOTOOLCHAIN=local", "GOFLAGS=-p=1"}
	ids := func(base int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: base, Size: p.IDs.Size}} }
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: p.Target, Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids(p.IDs.UIDBase), GidMappings: ids(p.IDs.GIDBase),
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)},
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func inside(t testing.TB, p Plan, args ...string) string {
	t.Helper()
	out, err := tryInside(p, p.User.UID, args...)
	if err != nil {
		t.Errorf("%q inside: %v\n%s", args, err, out)
	}
	return out
}

// mountOn is the last line of mountinfo for a path: its fields (proc_pid_mountinfo(5)).
func mountOn(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[4] == path {
			found = f
		}
	}
	if found == nil {
		t.Fatalf("nothing is mounted on %s", path)
	}
	return found
}

// hasOptions: whether the mount on a path has all those flags.
func hasOptions(t testing.TB, path string, want ...string) {
	t.Helper()
	have := strings.Split(mountOn(t, path)[5], ",")
	for _, option := range want {
		if !slices.Contains(have, option) {
			t.Errorf("%s is mounted %v, without %s", path, have, option)
		}
	}
}

func statOf(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %s: %v", path, err)
	}
	return st
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// userDir is a directory that belongs to a user of the host.
func userDir(t testing.TB, uid, gid int) string {
	t.Helper()
	dir := openDir(t)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}
