package rootfs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRootUserNS: the mapping is as asked for, and nothing stays.
func TestRootUserNS(t *testing.T) {
	requireRoot(t)
	before := openFiles(t)
	for range 3 {
		ns, err := UserNS(Mapping{FromUID: 5, ToUID: 700001, FromGID: 6, ToGID: 700002, RootGID: 800000})
		if err != nil {
			t.Fatal(err)
		}
		if flags, err := unix.FcntlInt(ns.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %x, %v: would be inherited", flags, err)
		}
		ns.Close()
	}
	if after := openFiles(t); after != before {
		t.Errorf("open files before:\n%s\nafter:\n%s", before, after)
	}
	noChildren(t)
}

// TestRootAssembleLeavesNothing: no file and no process, whether it works or not.
func TestRootAssembleLeavesNothing(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.Mounts = []Mount{{Kind: KindBind, Source: userDir(t, 5, 6), Destination: "/data"}}
	assemble(t, p) // the runtime opens files of its own for the first process
	before := openFiles(t)
	for _, source := range []string{p.Mounts[0].Source, "/proc/self/none"} {
		p.Mounts = append(p.Mounts[:1], Mount{Kind: KindBind, Source: source, Destination: "/proc2"})
		unmount(p)
		_, err := Assemble(p)
		if (err != nil) != strings.Contains(source, "none") {
			t.Error(err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("open files before:\n%s\nafter:\n%s", before, after)
	}
	noChildren(t)
	if uid, err := unix.SetfsuidRetUid(-1); uid != 0 || err != nil {
		t.Errorf("the thread acts as %d, %v", uid, err)
	}
}

// openFiles lists what this process has open.
func openFiles(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, fd := range list(t, "/proc/self/fd") {
		target, err := os.Readlink("/proc/self/fd/" + fd)
		if err == nil && !strings.HasPrefix(target, "/proc/") { // the listing itself
			lines = append(lines, fd+" "+target)
		}
	}
	return strings.Join(lines, "\n")
}

func noChildren(t *testing.T) {
	t.Helper()
	tasks := list(t, "/proc/self/task")
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", task))
		if err == nil && len(text) > 0 {
			t.Errorf("children: %s", text)
		}
	}
}
