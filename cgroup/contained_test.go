package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// runInside is what a copy of this program does in namespaces of its own.
func runInside(name string) error {
	switch name {
	case "container":
		return errors.Join(mountOwn(), useContainer())
	case "missing":
		return errors.Join(mountOwn(), refused("no memory controller", "delegate"))
	case "unmounted":
		return errors.Join(unix.Unmount(os.Getenv("HUSK_TEST_CGROUP_MOUNT"), unix.MNT_DETACH),
			refused("no memory controller", "mount it"))
	case "read-only":
		return errors.Join(mountReadOnly(), refused("no writable cgroup file system", "/sys/fs/cgroup", "read-only"))
	case "guest":
		return beGuest()
	case "read-only later":
		return readOnlyLater()
	}
	return fmt.Errorf("no case %q", name)
}

// inContainer runs a case in a mount namespace, and if it names controllers also in a cgroup namespace
// that has these.
func inContainer(t *testing.T, name, controllers string) {
	t.Helper()
	tree := testTree(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	cmd.Env = append(os.Environ(), inside+"="+name)
	if tree.mode == Hybrid {
		cmd.Env = append(cmd.Env, "HUSK_TEST_CGROUP_MOUNT="+tree.of[memory].point)
	}
	if controllers != "" {
		above := at(tree.v2, tree.parent, "c")
		root := above + "/root"
		defer func() {
			if err := tree.remove(deadline(t), tree.parent+"/c"); err != nil {
				t.Error(err)
			}
		}()
		err := errors.Join(os.Mkdir(above, 0o755), os.WriteFile(above+"/cgroup.subtree_control", []byte(controllers), 0), os.Mkdir(root, 0o755))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		cmd.SysProcAttr.Unshareflags |= unix.CLONE_NEWCGROUP
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, out.Bytes())
	}
}

func mountOwn() error {
	return errors.Join(os.NewSyscallError("umount", unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH)),
		os.NewSyscallError("mount", unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, "")))
}

func mountReadOnly() error { return remount(unix.MS_RDONLY) }

// remount gives all cgroup mounts a flag, or takes it away.
func remount(flag uintptr) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := parseMounts(f)
	for _, m := range list {
		err = errors.Join(err, unix.Mount("", m.point, "", unix.MS_BIND|unix.MS_REMOUNT|flag, ""))
	}
	return err
}

// refused: Open is, in one line with these words.
func refused(words ...string) error {
	_, err := Open("/husk-test-refused-" + strconv.Itoa(os.Getpid()))
	if err == nil {
		return errors.New("Open succeeds")
	}
	return unavailable(err, words...)
}

func unavailable(err error, words ...string) error {
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("not one line of UnavailableError: %w", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("not named: %q in: %w", word, err)
		}
	}
	return nil
}

// useContainer: a whole life in a container whose root group has processes: we, and another one.
func useContainer() error {
	other := exec.Command("/bin/sleep", "600")
	if err := other.Start(); err != nil {
		return err
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	tree, err := Open("")
	if err != nil {
		return err
	}
	text, err := os.ReadFile("/sys/fs/cgroup/cgroup.procs")
	if err != nil || len(text) > 0 {
		return fmt.Errorf("left in the root group: %q, %w", text, err)
	}
	text, err = os.ReadFile("/sys/fs/cgroup/init/cgroup.procs")
	if err != nil || !strings.Contains(string(text), strconv.Itoa(other.Process.Pid)) {
		return fmt.Errorf("process %d is not in init: %q, %w", other.Process.Pid, text, err)
	}
	group, err := tree.Create("a1", Limits{Memory: 64 << 20}, Owner{})
	if err != nil {
		return err
	}
	leaf, err := group.Leaf("1", Limits{Memory: 32 << 20})
	if err != nil {
		return err
	}
	cmd := shell(leaf, hungry)
	ended := cmd.Run()
	usage, err := leaf.Usage()
	if err != nil || usage.OOMKills == nil || *usage.OOMKills != 1 {
		err = fmt.Errorf("ended with %w, usage %s, %w", ended, describe(usage), err)
	}
	return errors.Join(err, leaf.Remove(), group.Remove(context.Background()))
}

// readOnlyLater: the parent is there, but nothing can be made in it any more.
func readOnlyLater() error {
	parent := "/husk-test-later-" + strconv.Itoa(os.Getpid())
	tree, err := Open(parent)
	if err != nil {
		return err
	}
	defer func() {
		_ = remount(0)
		for _, h := range tree.all {
			_ = os.Remove(at(h, parent))
		}
	}()
	if err := mountReadOnly(); err != nil {
		return err
	}
	_, err = tree.Create("a1", Limits{}, Owner{})
	if !errors.Is(err, unix.EROFS) || strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("Create gives %w", err)
	}
	return nil
}

// C6: our root is not the real one, and has processes.
func TestRootInContainer(t *testing.T) {
	if testTree(t).mode == Hybrid {
		inContainer(t, "unmounted", "")
		return
	}
	inContainer(t, "container", "+cpu +memory +pids")
	inContainer(t, "missing", "+cpu +pids")
}

func TestRootReadOnly(t *testing.T) {
	inContainer(t, "read-only", "")
	inContainer(t, "read-only later", "")
}
