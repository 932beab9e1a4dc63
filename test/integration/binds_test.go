package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBinds: read-only unless rw is said; files and directories; what is wrong is said.
func TestBinds(t *testing.T) {
	dir := ownedDir(t, 4711, 4712)
	writeFile(t, filepath.Join(dir, "f"), []byte("old\n"), 0o644)
	if err := os.Chown(filepath.Join(dir, "f"), 4711, 4712); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, dir)
	for _, suffix := range []string{"", ":ro"} {
		o := sh(t, "cat /b/f; echo new >/b/f || rm /b/f || touch /b/g || chmod 777 /b/f || echo refused", "--bind", dir+":/b"+suffix)
		o.want(t, 0, "old\nrefused\n")
		sameTree(t, before, treeOf(t, dir))
		sh(t, "cat /b/c; echo new >/b/c || echo refused", "--bind", filepath.Join(dir, "f")+":/b/c"+suffix).want(t, 0, "old\nrefused\n")
		sameTree(t, before, treeOf(t, dir))
	}
	sh(t, "echo new >/b/f; cat /b/f", "--bind", dir+":/b:rw").want(t, 0, "new\n")
	sh(t, "echo newer >/c; cat /c", "--bind", filepath.Join(dir, "f")+":/c:rw").want(t, 0, "newer\n")
	if text, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(text) != "newer\n" {
		t.Errorf("on the host: %q, %v", text, err)
	}
	missing := filepath.Join(dir, "missing")
	husk(t, "run", "--bind", missing+":/b", "--", "true").wantError(t, missing, "no such file")
	if _, err := os.Lstat(missing); err == nil {
		t.Error("the missing source was made")
	}
	for _, dst := range []string{"/", "/proc", "/proc/x", "/sys", "/dev", "/dev/x", "relative", ""} {
		husk(t, "run", "--bind", dir+":"+dst, "--", "true").wantError(t, "bind")
	}
	husk(t, "run", "--bind", dir+":/a", "--bind", dir+":/a", "--", "true").wantError(t, "/a")
}

// TestBindOwner: what is written belongs on the host to the owner of the source, whoever wrote it inside.
func TestBindOwner(t *testing.T) {
	for _, user := range []string{"1000", "root", "7:8"} {
		dir := ownedDir(t, 4711, 4712)
		o := sh(t, `cd /b && stat -c %u:%g . && touch file && mkdir dir && ln -s x link && mkfifo fifo && stat -c %u:%g file dir link fifo | sort -u`,
			"--user", user, "--bind", dir+":/b:rw")
		inside := map[string]string{"1000": "1000:1000", "root": "0:0", "7:8": "7:8"}[user]
		o.want(t, 0, inside+"\n"+inside+"\n")
		for _, name := range []string{"file", "dir", "link", "fifo"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || owner(info) != "4711:4712" {
				t.Errorf("as %s: %s: %v, %v", user, name, info, err)
			}
		}
	}
}

// TestBindOfRoot: what the host's root owns is writable only where that is spelled out.
func TestBindOfRoot(t *testing.T) {
	dir := ownedDir(t, 0, 0)
	husk(t, "run", "--bind", dir+":/b:rw", "--", "touch", "/b/f").wantError(t, dir, "host-root")
	husk(t, "run", "--user", "root", "--bind", dir+":/b:rw", "--", "touch", "/b/f").wantError(t, dir, "host-root")
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("in the directory: %v", files)
	}
	husk(t, "run", "--bind", dir+":/b:rw,host-root", "--", "touch", "/b/f").want(t, 0, "")
	if info, err := os.Lstat(filepath.Join(dir, "f")); err != nil || owner(info) != "0:0" {
		t.Errorf("%v, %v", info, err)
	}
	husk(t, "run", "--bind", dir+":/b:ro,host-root", "--", "true").wantError(t, "host-root")
	// nor is a group of root's given away with the owner's files
	group := ownedDir(t, 4711, 0)
	o := husk(t, "run", "--bind", group+":/b:rw", "--", "touch", "/b/f")
	info, err := os.Lstat(filepath.Join(group, "f"))
	if o.code == 125 {
		o.wantError(t, group, "group", "host-root")
	} else if err != nil || owner(info) == "4711:0" || o.code != 0 {
		t.Errorf("exit code %d, stderr %q, file %v, %v", o.code, o.stderr, info, err)
	}
}

// TestSetIDOnBinds: nobody inside leaves a set-id program on the host, by any call, user or profile.
func TestSetIDOnBinds(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, profile := range []string{"default", "strict", "unconfined"} {
			dir := ownedDir(t, 4711, 4712)
			f := attack(t, "setid", append(flags, "--seccomp", profile, "-w", "/b", "--bind", dir+":/b:rw")...)
			for _, name := range []string{"create", "plain", "mkdir"} {
				if got := f.take(name); got != "OK" {
					t.Errorf("%s: %s", name, got)
				}
			}
			f.take("chown") // root's own inside, which is the owner's outside
			f.refused(t, "EPERM", "ENOSYS", "EOPNOTSUPP", "EINVAL")
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 2 {
				t.Errorf("on the host: %v, %v", files, err)
			}
			for _, file := range files {
				info, err := file.Info()
				if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 || owner(info) != "4711:4712" {
					t.Errorf("on the host: %v, %v", info, err)
				}
			}
		}
	})
	// a profile of the caller's own cannot open it again
	dir := ownedDir(t, 4711, 4712)
	o := sh(t, "touch /b/f; chmod 4755 /b/f; stat -c %a /b/f", "--seccomp", profile(t, "SCMP_ACT_LOG", "chmod", "fchmodat"), "--bind", dir+":/b:rw")
	o.want(t, 0, "644\n")
}

// TestBindSeesHost: what the host writes appears inside at once, and an unmount or mount inside never
// reaches the host.
func TestBindSeesHost(t *testing.T) {
	dir := t.TempDir()
	id := create(t, "--bind", dir+":/b")
	writeFile(t, filepath.Join(dir, "later"), []byte("later\n"), 0o644)
	husk(t, "exec", id, "--", "cat", "/b/later").want(t, 0, "later\n")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) || strings.Contains(string(mounts), id) {
		t.Errorf("mounts of the sandbox are seen on the host: %v", err)
	}
}

// TestBindIsNoDevice: device nodes and set-id programs on a bind are dead.
func TestBindIsNoDevice(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Fatal(err)
	}
	sh(t, "cat /b/null; echo $?", "--user", "root", "--bind", dir+":/b").want(t, 0, "1\n")
}

// TestTmpfs: sizes, modes, inodes; no programs unless exec is said.
func TestTmpfs(t *testing.T) {
	r, _ := shResult(t, "head -c 5m /dev/zero >/t/x; stat -c %s /t/x; stat -c %a /t", "--tmpfs", "/t:size=2m,mode=700,inodes=10", "--user", "root")
	if r.Stdout != "2097152\n700\n" || len(r.DiskFull) != 1 || r.DiskFull[0] != "/t" {
		t.Errorf("%+v", r)
	}
	r, _ = shResult(t, "for i in 1 2 3 4 5 6 7 8 9 10 11; do touch /t/$i 2>/dev/null || break; done; ls /t | wc -l", "--tmpfs", "/t:inodes=10")
	if r.Stdout != "9\n" || len(r.DiskFull) != 1 {
		t.Errorf("%+v", r)
	}
	const try = "cp /bin/true /t/true; /t/true; echo $?"
	sh(t, try, "--tmpfs", "/t").want(t, 0, "126\n")
	sh(t, try, "--tmpfs", "/t:exec").want(t, 0, "0\n")
	for _, text := range []string{"/", "/proc/x", "/dev", "x", "/t:size=0", "/t:size=x", "/t:mode=9", "/t:inodes=0", "/t:suid"} {
		husk(t, "run", "--tmpfs", text, "--", "true").wantError(t, "tmpfs")
	}
}

// TestScopes: a server and files in /tmp, /run, /dev/shm are reached by the next execution of a sandbox of
// scope sandbox, and not in scope execute; workspace and binds are in both.
func TestScopes(t *testing.T) {
	const serve = `import socket
s = socket.create_server(("127.0.0.1", 4711))
for d in ("/tmp", "/run", "/dev/shm", "/workspace"): open(d + "/file", "w").write("x")
print("ready", flush=True)
while True: s.accept()[0].sendall(b"hello")`
	const look = `import socket, os
print([d for d in ("/tmp", "/run", "/dev/shm", "/workspace") if os.path.exists(d + "/file")])
try: print(socket.create_connection(("127.0.0.1", 4711), 5).recv(5))
except OSError as e: print(e.strerror)`
	for scope, want := range map[string]string{
		"sandbox": "['/tmp', '/run', '/dev/shm', '/workspace']\nb'hello'\n",
		"execute": "['/workspace']\nConnection refused\n",
	} {
		id := create(t, "--scope", scope)
		background(t, "ready\n", "exec", id, "--", "python3", "-c", serve)
		husk(t, "exec", id, "--", "python3", "-c", look).want(t, 0, want)
	}
}

// TestTmpfsGoesWithExecution: what an execution wrote to its own tmpfs is memory that is free again.
func TestTmpfsGoesWithExecution(t *testing.T) {
	id := create(t, "--memory", "128m")
	for range rounds(8) {
		o := husk(t, "exec", id, "--", "sh", "-c", "ls /tmp /dev/shm/ | grep -c x; head -c 12m /dev/zero >/tmp/x && head -c 24m /dev/zero >/dev/shm/x && echo full")
		o.want(t, 0, "0\nfull\n")
	}
	eventually(t, 5*time.Second, "the sandbox works on", func() bool { return husk(t, "exec", id, "--", "true").code == 0 })
}
