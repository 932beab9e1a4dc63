package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The guest is in <id>/guest and in the sandbox's user namespace; the leaf's descriptor is all that it has
// of the cgroup file system. It must be able to clone into the leaf, and go nowhere else.
func TestRootCloneByGuest(t *testing.T) {
	tree := testTree(t)
	group, err := tree.Create("a1", Limits{}, Owner{UID: 100000, GID: 100000})
	if err != nil {
		t.Fatal(err)
	}
	defer removeTwice(t, tree, group)
	leaf := testLeaf(t, group, Limits{})
	guest := at(tree.v2, group.GuestPath())
	if err := os.Mkdir(guest, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(guest)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 1000}}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{inside + "=guest"}
	cmd.ExtraFiles = []*os.File{leaf.Into()}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
		UidMappings: ids, GidMappings: ids, Credential: &syscall.Credential{NoSetGroups: true},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0::/"+tree.parent+"/a1/x/1\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// beGuest is what the copy of this program does there.
func beGuest() error {
	cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: 3}
	out, err := cmd.CombinedOutput()
	fmt.Printf("%s", out)
	return errors.Join(err, staysInside(3))
}

// staysInside: ".." of the root of a detached mount is that root.
func staysInside(into int) error {
	var here, above unix.Stat_t
	if err := unix.Fstat(into, &here); err != nil {
		return err
	}
	for _, path := range []string{"..", "../..", "../../.."} {
		err := unix.Fstatat(into, path, &above, 0)
		if err == nil && (above.Ino != here.Ino || above.Dev != here.Dev) {
			return fmt.Errorf("%s of the leaf is inode %d, not the leaf's %d", path, above.Ino, here.Ino)
		}
	}
	for _, path := range []string{"../x/cgroup.procs", "../1/cgroup.procs", "../../guest", "../../../husk"} {
		if err := unix.Faccessat(into, path, unix.F_OK, 0); err == nil {
			return fmt.Errorf("%s can be reached from the leaf", path)
		}
	}
	return unix.Faccessat(into, "cgroup.procs", unix.F_OK, 0)
}

func TestRootIntoIsDetached(t *testing.T) {
	leaf := testLeaf(t, testGroup(t, testTree(t), Limits{}), Limits{})
	if err := staysInside(int(leaf.Into().Fd())); err != nil {
		t.Error(err)
	}
}
