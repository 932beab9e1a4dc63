package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedMemory covers D3: /dev/shm is there, for all, and its size follows the memory limit.
func TestSharedMemory(t *testing.T) {
	const program = `
from multiprocessing import Lock, shared_memory as s
Lock(); m = s.SharedMemory(create=True, size=200<<20); m.buf[-1] = 1; m.unlink(); print("ok")`
	asUsers(t, func(t *testing.T, flags ...string) {
		flags = append(flags, "--memory", "1g")
		sh(t, "stat -c %a /dev/shm; df -m --output=size /dev/shm | tail -n 1 | tr -d ' '", flags...).want(t, 0, "1777\n256\n")
		husk(t, append(append([]string{"run"}, flags...), "--", "python3", "-c", program)...).want(t, 0, "ok\n")
	})
	sh(t, "df -m --output=size /dev/shm | tail -n 1 | tr -d ' '; head -c 20m /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x",
		"--tmpfs", "/dev/shm:size=10m").want(t, 0, "10\n10485760\n")
}

// TestStandardDevices covers D4.
func TestStandardDevices(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		o := husk(t, append(append([]string{"run"}, flags...), "--", "bash", "-c", `
diff <(echo a) <(echo a) && echo same; echo x | cat /dev/stdin; echo out > /dev/stdout; echo e > /dev/stderr; echo t | tee /dev/stderr
head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; head -c 3 /dev/random | wc -c; echo x > /dev/full || echo full; echo x > /dev/null
for l in fd stdin stdout stderr ptmx; do readlink /dev/$l; done`)...)
		o.want(t, 0, "same\nx\nout\nt\n3\n3\n3\nfull\n/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\npts/ptmx\n")
		if !strings.HasPrefix(o.stderr, "e\nt\n") {
			t.Errorf("stderr %q", o.stderr)
		}
	})
}

// TestResolverConfiguration covers D5 on base host: there is one wherever the network is on, a link on the
// host or not.
func TestResolverConfiguration(t *testing.T) {
	sh(t, "stat -c %F /etc/resolv.conf; cat /etc/resolv.conf").want(t, 0, "regular empty file\n")
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		text = nil
	}
	sh(t, "cat /etc/resolv.conf", "--net", "host").want(t, 0, string(text))
}

// TestWritablePlaces covers D8: what programs expect to write to is writable, and the root is not.
func TestWritablePlaces(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `
for d in /tmp /var/tmp /run /var/run /dev/shm "$HOME" "${XDG_CACHE_HOME:-$HOME/.cache}" /workspace; do
	mkdir -p $d && touch $d/t && echo ok $d
done
python3 -c 'import tempfile; tempfile.mkdtemp(); print("temporary")'
touch /usr/x 2>&1 | grep -o 'Read-only file system'; stat -c %a /tmp /var/tmp; pwd`, flags...)
		home := "/home/sandbox"
		if len(flags) > 0 {
			home = "/root"
		}
		o.want(t, 0, "ok /tmp\nok /var/tmp\nok /run\nok /var/run\nok /dev/shm\nok "+home+"\nok "+home+"/.cache\nok /workspace\ntemporary\n"+
			"Read-only file system\n1777\n1777\n/workspace\n")
	})
}

// TestOddStatePaths covers D10: signs that mount options and sockets are picky about, and paths longer
// than a socket's name may be.
func TestOddStatePaths(t *testing.T) {
	for _, name := range []string{"a:b", "a,b", `a\b`, "a b", "a%b", "ü", `a"b`, "a\nb", strings.Repeat("long", 40), "-x", "a=b", "lowerdir="} {
		dir := filepath.Join(t.TempDir(), name)
		file := filepath.Join(dir, "bound")
		if err := os.MkdirAll(file, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(file, "f"), []byte("x\n"), 0o644)
		global := []string{"--root", dir + "/root", "--run", dir + "/run"}
		escaped := strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(file)
		o := husk(t, append(global, "run", "--bind", escaped+":/bound", "--name", "x", "--", "cat", "/bound/f")...)
		if o.code != 0 || o.stdout != "x\n" {
			t.Errorf("state in %q: exit code %d, stdout %q, stderr %q", name, o.code, o.stdout, o.stderr)
		}
	}
	t.Chdir(t.TempDir())
	husk(t, "--root", "state/root", "--run", "state/run", "run", "--", "echo", "relative").want(t, 0, "relative\n")
	for _, name := range []string{"a:b", "a,b", `a\b`, "a b", "a%b", "ü", "..", ".", "A", "-a", "a/b", "", strings.Repeat("a", 65)} {
		if o := husk(t, "create", "--name="+name); name != "" && o.code != 125 || strings.Count(o.stderr, "\n") > 1 {
			t.Errorf("name %q: exit code %d, stderr %q", name, o.code, o.stderr)
		} else if o.code == 0 {
			husk(t, "rm", "-f", strings.TrimSpace(o.stdout))
		}
	}
}

// TestMountThroughLinks covers D16: a destination below a link is where the link leads inside.
func TestMountThroughLinks(t *testing.T) {
	source, outside := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(source, "f"), []byte("x\n"), 0o644)
	before := treeOf(t, outside)
	for _, dst := range []string{"/var/run/app", "/run/app"} { // a fresh /run would hide it
		husk(t, "run", "--bind", source+":"+dst, "--", "true").wantError(t, dst)
		sh(t, "cat /run/app/f", "--scope", "sandbox", "--bind", source+":"+dst).want(t, 0, "x\n")
	}
	for _, scope := range []string{"execute", "sandbox"} {
		sh(t, "touch /run/app/new && echo made; grep -c ' /run/app ' /proc/mounts", "--scope", scope, "--tmpfs", "/var/run/app").want(t, 0, "made\n1\n")
		sh(t, "touch /tmp/a/b/c/new && touch /tmp/a/x || echo made; grep -c ' /tmp/a' /proc/mounts", "--scope", scope,
			"--tmpfs", "/tmp/a/b/c:size=1m", "--tmpfs", "/tmp/a:mode=700,size=1m").want(t, 0, "made\n2\n")
	}
	sh(t, "touch /srv/a/b/new && echo made", "--tmpfs", "/srv/a/b").want(t, 0, "made\n")
	// below the host's read-only /usr nothing can be made: an error, or a mount that works
	o := sh(t, "cat /lib/m/f", "--bind", source+":/lib/m")
	if o.code != 0 || o.stdout != "x\n" {
		o.wantError(t, "/lib/m")
	}
	if _, err := os.Lstat("/usr/lib/m"); err == nil {
		t.Error("/usr/lib/m was made on the host")
	}
	sameTree(t, before, treeOf(t, outside))
}

// TestLinksInBinds covers D16 and probe 7: links below a bind, made by whoever may write there, lead a
// second bind nowhere but inside.
func TestLinksInBinds(t *testing.T) {
	outside, source, shared := t.TempDir(), t.TempDir(), ownedDir(t, 4711, 4711)
	writeFile(t, filepath.Join(source, "f"), []byte("x\n"), 0o644)
	for name, target := range map[string]string{
		"abs": outside, "rel": "../../../../../../../.." + outside, "root": "/", "proc": "/proc", "self": "/proc/self/root", "dev": "/dev", "etc": "/etc/passwd", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(shared, name)); err != nil {
			t.Fatal(err)
		}
	}
	before, etc := treeOf(t, outside), hashOf(t, "/etc/passwd")
	for _, name := range []string{"abs", "abs/deep/er", "rel/x", "root", "root/etc", "proc", "proc/x", "self/x", "dev/x", "etc", "loop"} {
		o := sh(t, "cat /proc/self/status | grep -c CapEff; test -c /dev/null", "--bind", shared+":/shared:rw", "--bind", source+":/shared/"+name)
		if o.code != 0 && (o.code != 125 || strings.Count(o.stderr, "\n") != 1) {
			t.Errorf("%s: exit code %d, stderr %q", name, o.code, o.stderr)
		}
		sameTree(t, before, treeOf(t, outside))
	}
	if hashOf(t, "/etc/passwd") != etc {
		t.Error("the host's /etc/passwd changed")
	}
	files, err := os.ReadDir(shared)
	if err != nil || len(files) != 8 {
		t.Errorf("in the shared directory: %v, %v", files, err)
	}
}
