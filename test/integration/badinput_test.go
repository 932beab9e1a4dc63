package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// elsewhere runs husk in a mount namespace of its own after set-up commands, to show it a host that lacks
// something.
func elsewhere(t *testing.T, setup string, args ...string) outcome {
	t.Helper()
	script := "set -e; mount --make-rprivate /; " + setup + `; exec "$0" "$@"`
	saved := bin
	bin = "/usr/bin/unshare"
	defer func() { bin = saved }()
	return husk(t, append([]string{"-m", "sh", "-c", script, saved}, args...)...)
}

func TestBadFlags(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	cases := map[string][]string{
		"--memory":   {"run", "--memory", "64", "--", "true"},
		"at least":   {"run", "--memory", "1m", "--", "true"},
		"--cpus":     {"run", "--cpus", "none", "--", "true"},
		"--pids":     {"run", "--pids", "0", "--", "true"},
		"--timeout":  {"run", "--timeout", "-1s", "--", "true"},
		"--net":      {"run", "--net", "bridge", "--", "true"},
		"allow":      {"run", "--net", "allow:example.com", "--", "true"},
		missing:      {"run", "--bind", missing + ":/x", "--", "true"},
		"nofiles":    {"run", "--rlimit", "nofiles=3", "--", "true"},
		"--env-file": {"run", "--env-file", missing, "--", "true"},
		"--seccomp":  {"run", "--seccomp", missing, "--", "true"},
		"--frobnick": {"run", "--frobnick", "--", "true"},
		"nobody2":    {"run", "--user", "nobody2", "--", "true"},
		"frobnicate": {"frobnicate"},
		"/proc":      {"run", "--tmpfs", "/proc/x", "--", "true"},
		"work":       {"run", "--workdir", "relative", "--", "true"},
		"hostname":   {"run", "--hostname", "a b", "--", "true"},
	}
	for part, args := range cases {
		t.Run(part, func(t *testing.T) {
			s := newStore(t)
			s.husk(args...).wantError(t, part)
			s.nothingLeft()
		})
	}
}

// TestUserNames (probe 11): a user that is not exactly a name or a number is an error, never uid 0.
func TestUserNames(t *testing.T) {
	for _, user := range []string{"+0", " 0", "0 ", "-1", "1000:", ":0", "65536", "4294967296", "99999999999999999999", "root\n", "0x0"} {
		husk(t, "run", "--user", user, "--", "id").wantError(t, "user")
	}
	sh(t, "id -u", "--user", "0").want(t, 0, "0\n")
	sh(t, "id -u; id -g", "--user", "1234:99").want(t, 0, "1234\n99\n")
}

func TestWithoutRoot(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "husk-test") // all may search it, other than TMPDIR
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "husk")
	if out, err := exec.Command("cp", bin, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(copied, "run", "--", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := cmd.CombinedOutput()
	o := outcome{stderr: string(out), code: cmd.ProcessState.ExitCode()}
	o.wantError(t, "root", "sudo")
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	setup := fmt.Sprintf("mount -t tmpfs -o size=64k,nr_inodes=2000 small %s; dd if=/dev/zero of=%s/fill bs=4k 2>/dev/null || true", dir, dir)
	o := elsewhere(t, setup, "--root", dir+"/root", "run", "--", "true")
	o.wantError(t, dir, "no space left")
}

func TestReadOnlyStore(t *testing.T) {
	dir := t.TempDir()
	o := elsewhere(t, "mount -t tmpfs -o ro none "+dir, "--root", dir+"/root", "run", "--", "true")
	o.wantError(t, dir, "read-only")
}

func TestNewerStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	husk(t, "--root", dir, "run", "--", "true").wantError(t, dir, "newer")
}

// TestNoCgroups: a host without cgroup mounts is told so.
func TestNoCgroups(t *testing.T) {
	o := elsewhere(t, "umount -R -l /sys/fs/cgroup", "run", "--", "true")
	o.wantError(t, "cgroup")
}

// TestIDRangesUsedUp: a block for one sandbox serves one at a time.
func TestIDRangesUsedUp(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "ids")
	if err := os.WriteFile(file, []byte("husk:1700000000:65536\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	setup := fmt.Sprintf("mount --bind %s /etc/subuid; mount --bind %s /etc/subgid", file, file)
	first := elsewhere(t, setup, append(s.flags(), "create")...)
	id := strings.TrimSpace(first.stdout)
	if first.code != 0 {
		t.Fatalf("%+v", first)
	}
	elsewhere(t, setup, append(s.flags(), "create")...).wantError(t, "id range", "in use")
	elsewhere(t, setup, append(s.flags(), "rm", "-f", id)...).want(t, 0, id+"\n")
	elsewhere(t, setup, append(s.flags(), "run", "--", "echo", "again")...).want(t, 0, "again\n")
	s.nothingLeft()
}

// TestIDBlocks: what is wrong in /etc/subuid is said, with the file.
func TestIDBlocks(t *testing.T) {
	for name, text := range map[string]string{
		"too small": "husk:1700000000:100\n",
		"overlap":   "alice:1879048192:65536\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ids")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			setup := fmt.Sprintf("mount --bind %s /etc/subuid; mount --bind %s /etc/subgid", file, file)
			s := newStore(t)
			elsewhere(t, setup, append(s.flags(), "run", "--", "true")...).wantError(t, "/etc/subuid")
			s.nothingLeft()
		})
	}
}
