package rootfs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wantRefused fails unless the plan is refused with all of those words.
func wantRefused(t *testing.T, p Plan, words ...string) {
	t.Helper()
	_, err := Assemble(p)
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one that has %q", err, word)
		}
	}
}

func writableBind(t *testing.T, source string) Plan {
	t.Helper()
	p := testPlan(t)
	p.Mounts = []Mount{{Kind: KindBind, Source: source, Destination: "/data"}}
	return p
}

// An idmapped source cannot be mapped again; its file system is not to blame.
func TestRootBindOfMappedSaysSo(t *testing.T) {
	private(t)
	f, err := openPath(userDir(t, 12345, 12345))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ns, err := UserNS(Mapping{FromUID: 12345, ToUID: 34567, FromGID: 12345, ToGID: 34567})
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	tree, err := cloneWith(f, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	on := openDir(t)
	if err := unix.MoveMount(int(tree.Fd()), "", unix.AT_FDCWD, on, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(on, unix.MNT_DETACH) })
	wantRefused(t, writableBind(t, on), on, "its ids are mapped already")
}

// Where a mount below the source is the obstacle, the error names that one. Overlayfs cannot be idmapped.
func TestRootBindNamesObstacle(t *testing.T) {
	for _, below := range []string{"", "/a b", `/deep/a\b`} {
		t.Run(below, func(t *testing.T) {
			private(t)
			dir, parts := userDir(t, 12345, 12345), openDir(t)
			if err := os.MkdirAll(dir+below, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"lower", "upper", "work"} {
				if err := os.Mkdir(parts+"/"+d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			options := "lowerdir=" + parts + "/lower,upperdir=" + parts + "/upper,workdir=" + parts + "/work"
			if err := unix.Mount("overlay", dir+below, "overlay", 0, options); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir+below, unix.MNT_DETACH) })
			if err := os.Chown(dir, 12345, 12345); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, writableBind(t, dir), dir+below, "(overlay)", "bind it read-only")
		})
	}
}

func TestRootMissingTargetIsNamed(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.Target += "-none"
	wantRefused(t, p, p.Target)
	p = testPlan(t)
	p.Dev += "-none"
	wantRefused(t, p, p.Dev)
}

// The kernel says "no space left on device"; changes a limit of the whole machine.
func TestRootUserNSLimitIsNamed(t *testing.T) {
	requireRoot(t)
	if os.Getenv("HUSK_VM") == "" {
		t.Skip("only in the virtual machine: changes a limit of the whole machine")
	}
	const knob = "/proc/sys/user/max_user_namespaces"
	old, err := os.ReadFile(knob)
	if err == nil {
		err = os.WriteFile(knob, []byte("0"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(knob, old, 0o644) }()
	_, err = UserNS(Mapping{FromUID: 1, ToUID: 2, FromGID: 1, ToGID: 2})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), knob) {
		t.Errorf("error %v, want one that names %s", err, knob)
	}
}

func TestRootHostsWithoutHostname(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.Hostname = ""
	assemble(t, p)
	text, err := os.ReadFile(p.Target + "/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if len(strings.Fields(line)) < 2 {
			t.Errorf("/etc/hosts has the line %q", line)
		}
	}
}
