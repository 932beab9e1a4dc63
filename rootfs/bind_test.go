package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// bindTest is a root with one bind of a directory that belongs to 12345:12345, or its error.
func bindTest(t *testing.T, m Mount, more ...Mount) (Plan, error) {
	t.Helper()
	p := testPlan(t)
	m.Kind = KindBind
	if m.Destination == "" {
		m.Destination = "/data"
	}
	p.Mounts = append([]Mount{m}, more...)
	_, err := Assemble(p)
	return p, err
}

func TestRootBindReadOnly(t *testing.T) {
	private(t)
	source := openDir(t)
	writeFile(t, source+"/f", "hello")
	p, err := bindTest(t, Mount{Source: source, Destination: "/made/for/it", ReadOnly: true, NoExec: true})
	if err != nil {
		t.Fatal(err)
	}
	at := p.Target + "/made/for/it"
	hasOptions(t, at, "ro", "nosuid", "nodev", "noexec")
	if out := inside(t, p, "/bin/cat", "/made/for/it/f"); out != "hello" {
		t.Errorf("%q", out)
	}
	if err := os.WriteFile(at+"/canary", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("write: %v", err)
	}
}

func TestRootBindFile(t *testing.T) {
	private(t)
	source := openDir(t) + "/f"
	writeFile(t, source, "hello")
	p, err := bindTest(t, Mount{Source: source, Destination: "/made/file", ReadOnly: true}, Mount{
		Kind: KindBind, Source: source, Destination: "/etc/hosts", ReadOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"/made/file", "/etc/hosts"} {
		if out := inside(t, p, "/bin/cat", at); out != "hello" {
			t.Errorf("%s: %q", at, out)
		}
	}
	if err := unix.Unmount(p.Target+"/made/file", 0); err != nil {
		t.Fatal(err)
	}
	if st := statOf(t, p.Target+"/made/file"); st.Mode != unix.S_IFREG|0o644 || st.Uid != testBase {
		t.Errorf("mount point: mode %o, owner %d", st.Mode, st.Uid)
	}
}

func TestRootBindErrors(t *testing.T) {
	private(t)
	dir := userDir(t, 12345, 12345)
	writeFile(t, dir+"/file", "")
	if err := os.Symlink("nowhere", dir+"/dangling"); err != nil {
		t.Fatal(err)
	}
	rooted := openDir(t)
	groupRooted := userDir(t, 12345, 0)
	if err := os.Chmod(groupRooted, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	show := Mount{Kind: KindBind, Source: dir, Destination: "/d", ReadOnly: true}
	cases := map[string]struct {
		mounts []Mount
		is     error
		want   string
	}{
		"missing":           {[]Mount{{Source: dir + "/none", Destination: "/d"}}, fs.ErrNotExist, "bind " + dir + "/none: no such file or directory"},
		"below a file":      {[]Mount{{Source: dir + "/file/x", Destination: "/d"}}, unix.ENOTDIR, "bind " + dir + "/file/x: not a directory"},
		"root's":            {[]Mount{{Source: rooted, Destination: "/d"}}, nil, "bind " + rooted + ": it belongs to the host's root"},
		"root's group":      {[]Mount{{Source: groupRooted, Destination: "/d"}}, nil, "group root"},
		"file on directory": {[]Mount{{Source: dir + "/file", Destination: "/etc", ReadOnly: true}}, unix.EISDIR, "on /etc: a file cannot"},
		"directory on file": {[]Mount{{Source: dir, Destination: "/etc/hosts", ReadOnly: true}}, unix.ENOTDIR, "on /etc/hosts: a directory cannot"},
		"file on shm":       {[]Mount{{Source: dir + "/file", Destination: "/dev/shm", ReadOnly: true}}, unix.EISDIR, "a file cannot"},
		"dangling link":     {[]Mount{show, {Source: dir, Destination: "/d/dangling", ReadOnly: true}}, unix.EEXIST, "/d/dangling: dangling is a link to nothing"},
		"dangling base":     {[]Mount{{Source: dir, Destination: "/var/lock", ReadOnly: true}}, unix.EEXIST, "/var/lock: lock is a link to nothing"},
		"in a read-only":    {[]Mount{show, {Source: dir, Destination: "/d/new", ReadOnly: true}}, unix.EROFS, "/d/new: new is missing where nothing can be made"},
		"in usr":            {[]Mount{{Source: dir, Destination: "/usr/new", ReadOnly: true}}, unix.EROFS, "/usr/new"},
		"proc":              {[]Mount{{Source: "/proc/sys", Destination: "/d", AsHostRoot: true}}, unix.EINVAL, "file system (proc)"},
		"sysfs":             {[]Mount{{Source: "/sys/kernel", Destination: "/d", AsHostRoot: true}}, unix.EINVAL, "file system (sysfs)"},
	}
	for name, c := range cases {
		p := testPlan(t)
		for _, m := range c.mounts {
			m.Kind = KindBind
			p.Mounts = append(p.Mounts, m)
		}
		_, err := Assemble(p)
		unmount(p)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "bind /") != 1 {
			t.Errorf("%s: %v\nwant %q", name, err, c.want)
		}
	}
}

// TestRootBindLinkStaysInside: links in earlier binds are followed in the root only, and not to what is
// the sandbox's own.
func TestRootBindLinkStaysInside(t *testing.T) {
	private(t)
	outside := openDir(t)
	source := userDir(t, 12345, 12345)
	writeFile(t, source+"/f", "hello")
	links := userDir(t, 12345, 12345)
	if err := os.MkdirAll(outside+"/there", 0o755); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 40)
	for name, c := range map[string]struct{ link, below, want string }{
		"absolute":     {outside, "", "link to nothing"},
		"relative":     {up + outside[1:], "", "link to nothing"},
		"exists there": {outside, "/there", ""},
		"in the root":  {"/mnt", "", ""},
		"proc":         {"/proc", "", "/proc is the sandbox's own"},
		"dev":          {"../dev", "/shm", "/dev is the sandbox's own"},
		"sys":          {"sys", "/../../sys", ""},
		"the root":     {"/", "", "/ is the sandbox's own"},
		"above":        {up, "", "/ is the sandbox's own"},
	} {
		_ = os.Remove(links + "/l")
		if err := os.Symlink(c.link, links+"/l"); err != nil {
			t.Fatal(err)
		}
		p := testPlan(t)
		p.Mounts = []Mount{
			{Kind: KindBind, Source: links, Destination: "/links"},
			{Kind: KindBind, Source: source, Destination: "/links/l" + c.below, ReadOnly: true},
		}
		_, err := Assemble(p)
		if name == "in the root" {
			if _, err := os.Lstat(p.Target + "/mnt/f"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		unmount(p)
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if have := fmt.Sprint(list(t, outside), list(t, outside+"/there")); have != "[there] []" {
			t.Errorf("%s: the host now has %s", name, have)
		}
	}
}

// TestRootBindOddNames in everything that is a path.
func TestRootBindOddNames(t *testing.T) {
	private(t)
	const odd = "a b,c:d\\e\nü\"'%s\t"
	p := testPlan(t)
	dir := openDir(t)
	p.Target, p.Dev = dir+"/"+odd+"/root", dir+"/"+odd+"/dev"
	t.Cleanup(func() { unmount(p) })
	source := dir + "/" + odd + " source"
	writeFile(t, source+"/f", "hello")
	for _, d := range []string{p.Target, p.Dev} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.Mounts = []Mount{
		{Kind: KindBind, Source: source, Destination: "/" + odd + "/" + odd, ReadOnly: true},
		{Kind: KindTmpfs, Destination: "/tmp/" + odd, Size: 1 << 20, Inodes: 10, Mode: 0o755},
	}
	p.MountPoints = []string{"/home/" + odd}
	r := assemble(t, p)
	if r.MountPoints[0] != p.MountPoints[0] {
		t.Errorf("%q", r.MountPoints)
	}
	if out := inside(t, p, "/bin/cat", "/"+odd+"/"+odd+"/f"); out != "hello" {
		t.Errorf("%q", out)
	}
}

func TestRootBindLinkAsSource(t *testing.T) {
	private(t)
	source := openDir(t)
	writeFile(t, source+"/f", "hello")
	link := openDir(t) + "/link"
	if err := os.Symlink(source, link); err != nil {
		t.Fatal(err)
	}
	p, err := bindTest(t, Mount{Source: link, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if out := inside(t, p, "/bin/cat", "/data/f"); out != "hello" {
		t.Errorf("%q", out)
	}
}

// TestRootBindWritable: who owns what the sandbox's user makes, by who owns the source.
func TestRootBindWritable(t *testing.T) {
	private(t)
	for _, c := range []struct{ uid, gid, wantGID int }{{12345, 12345, 12345}, {12345, 777, 777}, {12345, 0, 12345}} {
		source := userDir(t, c.uid, c.gid)
		writeFile(t, source+"/roots", "x")
		p, err := bindTest(t, Mount{Source: source}, Mount{
			Kind: KindTmpfs, Destination: "/data/in/it", Size: 1 << 20, Inodes: 9, Mode: 0o755, // made on the host, as the owner
		})
		if err != nil {
			t.Fatal(err)
		}
		inside(t, p, "/bin/sh", "-c", "cd /data && mkdir d && echo x >d/f && ln -s f d/l && cat roots && ls -ld . >&2")
		for _, name := range []string{"d", "d/f", "d/l", "in", "in/it"} {
			if st := statOf(t, source+"/"+name); int(st.Uid) != c.uid || int(st.Gid) != c.wantGID {
				t.Errorf("%+v: %s belongs to %d:%d", c, name, st.Uid, st.Gid)
			}
		}
		for _, script := range []string{"echo y >/data/roots", "chgrp 65534 /data/d/f", "chgrp 0 /data/d/f", "chown 0 /data/d/f"} {
			if out, err := tryInside(p, 1000, "/bin/sh", "-c", script); err == nil {
				t.Errorf("%+v: %s: %s", c, script, out)
			}
			if out, err := tryInside(p, 0, "/bin/sh", "-c", script); err == nil && !strings.HasPrefix(script, "chgrp 0") {
				t.Errorf("%+v: as root: %s: %s", c, script, out)
			}
		}
		if st := statOf(t, source+"/d/f"); int(st.Uid) != c.uid || st.Gid == 0 {
			t.Errorf("%+v: d/f now belongs to %d:%d", c, st.Uid, st.Gid)
		}
	}
}

func TestRootBindAsHostRoot(t *testing.T) {
	private(t)
	source := openDir(t)
	p, err := bindTest(t, Mount{Source: source, AsHostRoot: true})
	if err != nil {
		t.Fatal(err)
	}
	inside(t, p, "/bin/sh", "-c", "echo x >/data/f")
	if st := statOf(t, source+"/f"); st.Uid != 0 || st.Gid != 0 {
		t.Errorf("belongs to %d:%d", st.Uid, st.Gid)
	}
}

// TestRootBindUnmappable: what cannot be idmapped is shown read-only, and never writable.
func TestRootBindUnmappable(t *testing.T) {
	private(t)
	dir := userDir(t, 12345, 12345)
	if err := unix.Mount("proc", dir, "proc", 0, ""); err != nil { // a submount that cannot
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	source := filepath.Dir(dir)
	if err := os.Chown(source, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	writeFile(t, source+"/f", "hello")
	p, err := bindTest(t, Mount{Source: source, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if out := inside(t, p, "/bin/cat", "/data/f"); out != "hello" {
		t.Errorf("%q", out)
	}
	if st := statOf(t, p.Target+"/data"); st.Uid != 12345 {
		t.Errorf("belongs to %d", st.Uid)
	}
	if _, err := bindTest(t, Mount{Source: source}); err == nil || !strings.Contains(err.Error(), "is mounted in it: its file system (proc) cannot map ids") {
		t.Errorf("writable: %v", err)
	}
}

// TestRootBindTmpfs: it can be idmapped from Linux 6.3 on.
func TestRootBindTmpfs(t *testing.T) {
	private(t)
	dir := openDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,uid=12345,gid=12345,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	p, err := bindTest(t, Mount{Source: dir})
	if !kernelHas(t, 6, 3) {
		if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "file system (tmpfs)") {
			t.Errorf("%v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	inside(t, p, "/bin/sh", "-c", "echo x >/data/f")
	if st := statOf(t, dir+"/f"); st.Uid != 12345 || st.Gid != 12345 {
		t.Errorf("belongs to %d:%d", st.Uid, st.Gid)
	}
}

func kernelHas(t *testing.T, major, minor int) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); err != nil {
		t.Fatal(err)
	}
	return a > major || a == major && b >= minor
}

// TestRootBindSubmounts: flags hold for all that is mounted below.
func TestRootBindSubmounts(t *testing.T) {
	private(t)
	source := openDir(t)
	writeFile(t, source+"/sub/x", "")
	if err := unix.Mount("tmpfs", source+"/sub", "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(source+"/sub", unix.MNT_DETACH) })
	p, err := bindTest(t, Mount{Source: source, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	hasOptions(t, p.Target+"/data/sub", "ro", "nosuid", "nodev")
	if err := os.WriteFile(p.Target+"/data/sub/f", nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("write: %v", err)
	}
}

// TestRootBindDevicesAndSetID have no effect.
func TestRootBindDevicesAndSetID(t *testing.T) {
	private(t)
	source := userDir(t, 12345, 12345)
	if err := unix.Mknod(source+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, source+"/id", string(text))
	if err := errors.Join(os.Chmod(source+"/null", 0o666), os.Chown(source+"/id", 12345, 12345), os.Chmod(source+"/id", 0o755|os.ModeSetuid|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	p, err := bindTest(t, Mount{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	hasOptions(t, p.Target+"/data", "rw", "nosuid", "nodev")
	if out, err := tryInside(p, 1000, "/bin/sh", "-c", "echo x >/data/null"); err == nil {
		t.Errorf("the device works: %s", out)
	}
	if out, err := tryInside(p, 5, "/data/id", "-u"); err != nil || strings.TrimSpace(out) != "5" {
		t.Errorf("set-id program: %q, %v", out, err)
	}
}

// TestRootBindSwappedSource: what was checked is what is shown, whoever swaps the path.
func TestRootBindSwappedSource(t *testing.T) {
	private(t)
	dir := openDir(t)
	for name, uid := range map[string]int{"mine": 12345, "roots": 0} {
		writeFile(t, dir+"/"+name+"/who", name)
		if err := os.Chown(dir+"/"+name, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("mine", dir+"/source"); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Symlink([]string{"roots", "mine"}[i%2], dir+"/new")
			_ = os.Rename(dir+"/new", dir+"/source")
		}
	}()
	refused := 0
	for range 40 {
		p, err := bindTest(t, Mount{Source: dir + "/source"})
		if err != nil {
			refused++
		} else if text, err := os.ReadFile(p.Target + "/data/who"); string(text) != "mine" {
			t.Errorf("%q, %v", text, err)
		}
		unmount(p)
	}
	close(stop)
	<-stopped
	t.Logf("%d of 40 were refused", refused)
}
