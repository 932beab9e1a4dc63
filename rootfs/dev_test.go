package rootfs

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRootDev(t *testing.T) {
	private(t)
	p := testPlan(t)
	assemble(t, p)
	want := []string{"fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
	if have := list(t, p.Dev); !slices.Equal(have, want) {
		t.Errorf("/dev has %v, want %v", have, want)
	}
	for name, number := range map[string]uint64{
		"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "full": unix.Mkdev(1, 7), "random": unix.Mkdev(1, 8),
		"urandom": unix.Mkdev(1, 9), "tty": unix.Mkdev(5, 0),
	} {
		st := statOf(t, p.Dev+"/"+name)
		if st.Mode != unix.S_IFCHR|0o666 || uint64(st.Rdev) != number || st.Uid != testBase || st.Gid != testBase {
			t.Errorf("/dev/%s: mode %o, device %x, owner %d:%d", name, st.Mode, st.Rdev, st.Uid, st.Gid)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "ptmx": "pts/ptmx"} {
		st := statOf(t, p.Dev+"/"+name)
		if got, err := os.Readlink(p.Dev + "/" + name); got != target || st.Uid != testBase || st.Gid != testBase {
			t.Errorf("/dev/%s: %q (%v), owner %d:%d", name, got, err, st.Uid, st.Gid)
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue", "."} {
		st := statOf(t, p.Dev+"/"+name)
		if st.Mode != unix.S_IFDIR|0o755 || st.Uid != testBase || st.Gid != testBase {
			t.Errorf("/dev/%s: mode %o, owner %d:%d", name, st.Mode, st.Uid, st.Gid)
		}
	}
	inside(t, p, "/bin/sh", "-c", "head -c 8 /dev/urandom >/dev/null && head -c 8 /dev/zero >/dev/null && echo x >/dev/null && ! echo x >/dev/full")
}

func TestRootTmpfs(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.Mounts = []Mount{
		{Kind: KindTmpfs, Destination: "/deep/in/here", Size: 1 << 20, Inodes: 50, Mode: 0o1750, UID: 7, GID: 8, NoExec: true},
		{Kind: KindTmpfs, Destination: "/dev/shm", Size: 2 << 20, Inodes: 60, Mode: 0o1777},
		{Kind: KindTmpfs, Destination: "/own", Size: 1 << 20, Inodes: 60, Mode: 0o755, UID: 1000, GID: 1000},
		{Kind: KindTmpfs, Destination: "/own/in/it", Size: 1 << 20, Inodes: 60, Mode: 0o755},
	}
	assemble(t, p)
	var fs unix.Statfs_t
	at := p.Target + "/deep/in/here"
	if err := unix.Statfs(at, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Blocks)*fs.Bsize != 1<<20 || fs.Files != 50 {
		t.Errorf("%+v, %v", fs, err)
	}
	if st := statOf(t, at); st.Mode != unix.S_IFDIR|0o1750 || st.Uid != testBase+7 || st.Gid != testBase+8 {
		t.Errorf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
	}
	hasOptions(t, at, "rw", "nosuid", "nodev", "noexec")
	hasOptions(t, p.Dev+"/shm", "rw", "nosuid", "nodev")
	for _, made := range []string{"/deep", "/deep/in"} {
		if st := statOf(t, p.Target+made); st.Uid != testBase || st.Gid != testBase || st.Mode != unix.S_IFDIR|0o755 {
			t.Errorf("%s: mode %o, owner %d:%d", made, st.Mode, st.Uid, st.Gid)
		}
	}
	if st := statOf(t, p.Target+"/own/in"); st.Uid != testBase+1000 { // where the sandbox's root may not write
		t.Errorf("/own/in belongs to %d", st.Uid)
	}
	inside(t, p, "/bin/sh", "-c", "echo x >/dev/shm/x && echo x >/own/x && ! echo x >/etc/x 2>/dev/null")
}

func TestRootMountPoints(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.MountPoints = []string{"/proc", "/var/run", "/a/b/../c", "/dev/pts", "/dev/shm/", "/dev/new", "/bin"}
	r := assemble(t, p)
	want := []string{"/proc", "/run", "/a/c", "/dev/pts", "/dev/shm", "/dev/new", "/bin"}
	if target, err := os.Readlink("/bin"); err == nil {
		want[6] = "/" + target
	}
	if !slices.Equal(r.MountPoints, want) {
		t.Errorf("got %q, want %q", r.MountPoints, want)
	}
	for _, name := range []string{p.Target + "/a/c", p.Dev + "/new"} {
		if st := statOf(t, name); st.Uid != testBase || st.Mode != unix.S_IFDIR|0o755 {
			t.Errorf("%s: mode %o, owner %d", name, st.Mode, st.Uid)
		}
	}
}

func TestRootTargetBehindLink(t *testing.T) {
	private(t)
	p := testPlan(t)
	link := openDir(t) + "/link"
	if err := os.Symlink(p.Target, link); err != nil {
		t.Fatal(err)
	}
	p.Target, p.MountPoints = link, []string{"/var/run"}
	if r := assemble(t, p); r.MountPoints[0] != "/run" {
		t.Errorf("%q", r.MountPoints)
	}
}
