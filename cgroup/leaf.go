package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Leaf is the group of one execution.
type Leaf struct {
	group *Group
	name  string
	made  int // in how many of group.dirs
	into  *os.File
	tasks []*os.File
	cpu   *os.File
	oom   *os.File
	kill  bool // OOMGroup on a hybrid host
}

// Leaf makes a group for one execution. Its limits are set on it as well as on x, because programs look
// for theirs at the root of their cgroup namespace, which the leaf becomes. Not for concurrent first use.
func (g *Group) Leaf(name string, l Limits) (*Leaf, error) {
	list, err := l.settings(g.tree.mode, g.tree.swap)
	if err != nil {
		return nil, err
	}
	leaf := &Leaf{group: g, name: name, kill: l.OOMGroup && g.tree.mode == Hybrid}
	if err := leaf.make(list); err != nil {
		_ = leaf.Remove()
		return nil, err
	}
	return leaf, nil
}

func (l *Leaf) make(list []setting) error {
	if l.group.dirs == nil {
		if err := l.group.open(); err != nil {
			return err
		}
	}
	for i := range l.group.dirs {
		d := &l.group.dirs[i]
		if err := unix.Mkdirat(d.number(), l.name, 0o755); err != nil {
			return fmt.Errorf("make group %s in %s: %w", l.name, d.fd.Name(), err)
		}
		l.made++
		if err := l.furnish(d, list); err != nil {
			return err
		}
	}
	return nil
}

// furnish sets the limits in one hierarchy and opens what the guest is handed.
func (l *Leaf) furnish(d *dir, list []setting) error {
	t := l.group.tree
	if d.has("cpuset") {
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := copyFrom(d.fd.Name(), d.fd.Name()+"/"+l.name, file); err != nil {
				return err
			}
		}
	}
	if err := t.apply(d, l.name, list); err != nil {
		return err
	}
	if d.v2 {
		return l.openInto(d)
	}
	f, err := openAt(d, l.name+"/tasks", unix.O_WRONLY)
	if err != nil {
		return err
	}
	l.tasks = append(l.tasks, f)
	if d.has("cpuacct") {
		l.cpu, err = openAt(d, l.name+"/cpuacct.usage", unix.O_RDONLY)
	}
	return err
}

// openInto opens the descriptor for CLONE_INTO_CGROUP: a detached mount of this one directory, from which
// ".." leads nowhere, since it goes to the guest.
func (l *Leaf) openInto(d *dir) error {
	o := l.group.owner
	if err := unix.Fchownat(d.number(), l.name+"/cgroup.procs", o.UID, o.GID, 0); err != nil {
		return fmt.Errorf("hand over group %s: %w", l.name, err)
	}
	fd, err := unix.OpenTree(d.number(), l.name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open tree of group %s: %w", l.name, err)
	}
	l.into = os.NewFile(uintptr(fd), "leaf")
	if l.group.tree.mode == Unified {
		l.cpu, err = openAt(d, l.name+"/cpu.stat", unix.O_RDONLY)
	}
	return err
}

func openAt(d *dir, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(d.number(), name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s/%s: %w", d.fd.Name(), name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Into is for CLONE_INTO_CGROUP (clone(2)). It belongs to the leaf, as do the other files.
func (l *Leaf) Into() *os.File { return l.into }

// Tasks are write-only files "tasks" of v1 hierarchies, empty on Unified. The child writes "0" into each:
// moving itself costs a hundredth of being moved, and the kernel checks the opener's rights, not its own.
func (l *Leaf) Tasks() []*os.File { return l.tasks }

// CPUFile holds the CPU time used so far: cpu.stat ("usage_usec N"), or cpuacct.usage (N nanoseconds) if
// CPUFileIsV1.
func (l *Leaf) CPUFile() *os.File { return l.cpu }

// CPUFileIsV1 tells the two kinds apart.
func (l *Leaf) CPUFileIsV1() bool { return l.group.tree.mode == Hybrid }

// OOMEvents is an eventfd that is signalled when the leaf ran out of memory, on hybrid hosts with
// OOMGroup, where the kernel cannot kill a group by itself; else nil.
func (l *Leaf) OOMEvents() (*os.File, error) {
	if !l.kill || l.oom != nil {
		return l.oom, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l.oom = os.NewFile(uintptr(fd), "oom")
	for i := range l.group.dirs {
		d := &l.group.dirs[i]
		if !d.has("memory") {
			continue
		}
		control, err := openAt(d, l.name+"/memory.oom_control", unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer control.Close()
		value := strconv.Itoa(fd) + " " + strconv.Itoa(int(control.Fd()))
		if err := writeFile(d.number(), l.name+"/cgroup.event_control", value); err != nil {
			return nil, err
		}
	}
	return l.oom, nil
}

// Kill kills all processes of the leaf (cgroup.kill).
func (l *Leaf) Kill() error {
	return writeFile(l.group.dirs[0].number(), l.name+"/cgroup.kill", "1")
}

// leafDeadline bounds the waiting for killed processes to be gone.
const leafDeadline = 10 * time.Second

// Remove kills what is left in the leaf and removes it from every hierarchy. Idempotent.
func (l *Leaf) Remove() error {
	for _, f := range append(l.tasks, l.into, l.cpu, l.oom) {
		if f != nil {
			f.Close()
		}
	}
	l.tasks, l.into, l.cpu, l.oom = nil, nil, nil, nil
	var first error
	for ; l.made > 0; l.made-- {
		d := &l.group.dirs[l.made-1]
		err := unix.Unlinkat(d.number(), l.name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.EBUSY) {
			err = l.removeBusy(d)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) && first == nil {
			first = fmt.Errorf("remove group %s/%s: %w", d.fd.Name(), l.name, err)
		}
	}
	return first
}

// removeBusy is for a leaf with processes in it still.
func (l *Leaf) removeBusy(d *dir) error {
	ctx, cancel := context.WithTimeout(context.Background(), leafDeadline)
	defer cancel()
	v2 := l.group.dirs[0].fd.Name() + "/" + l.name
	if err := l.Kill(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := waitEvent(ctx, v2, "populated 0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return rmdirRetry(ctx, d.fd.Name()+"/"+l.name)
}
