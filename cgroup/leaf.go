package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Leaf is the group of one execution. The files it hands out stay its own: Close or Remove closes them.
// It is safe for concurrent use.
type Leaf struct {
	group *Group
	name  string
	own   []*os.File // x in each hierarchy that the leaf has a directory in; v2 first

	into, cpuFile *os.File
	tasks         []*os.File
	oomGroup      bool

	mu        sync.Mutex
	x         *dirs // a share; nil once the leaf is removed
	oomEvents *os.File
}

// Leaf makes the group of an execution, below the sandbox's, with its limits in force. The limits are
// written on the leaf itself, where the program looks for them. The caller must call Remove.
func (g *Group) Leaf(name string, l Limits) (*Leaf, error) {
	if err := errors.Join(checkName(name), l.validate(), g.tree.checkSwap(l)); err != nil {
		return nil, err
	}
	x, owner, err := g.open()
	if err == nil && l.CPUSet != "" {
		x, err = g.openWithCPUSets(x)
	}
	if err != nil {
		return nil, fmt.Errorf("make group %s of %s: %w", name, g.id, err)
	}
	leaf := &Leaf{group: g, name: name, x: x, oomGroup: l.OOMGroup && g.tree.mode == Hybrid}
	if err := leaf.build(l, owner); err != nil {
		_ = leaf.Remove()
		if l.CPUSet != "" {
			g.leaveCPUSets(err)
		}
		return nil, fmt.Errorf("make group %s of %s: %w", name, g.id, err)
	}
	return leaf, nil
}

func (f *Leaf) build(l Limits, owner Owner) error {
	for _, dir := range f.ownDirs(l) {
		if err := makeDir(dir, f.name); err != nil {
			return err
		}
		f.own = append(f.own, dir)
	}
	for _, s := range l.settings(f.group.tree.mode, f.group.tree.swapFile) {
		if err := explain(write(f.x.of[s.in], f.name+"/"+s.file, s.value)); err != nil {
			return err
		}
	}
	if l.CPUSet != "" {
		if err := f.group.limitLeafCPUs(f.name, l.CPUSet); err != nil {
			return err
		}
	}
	if err := chown(f.x.v2, f.name+"/cgroup.procs", owner); err != nil {
		return err
	}
	return f.openFiles()
}

// ownDirs are x in the hierarchies in which the leaf gets a directory. In those where there is
// nothing to limit or to count at this level its processes stand in x itself.
func (f *Leaf) ownDirs(l Limits) []*os.File {
	list := make([]*os.File, 1, 1+numControllers)
	list[0] = f.x.v2
	needs := [numControllers]bool{memory: true, pids: true, cpu: l.CPUs > 0, cpuset: l.CPUSet != ""}
	for c, dir := range f.x.of {
		if dir != nil && needs[c] && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

func (f *Leaf) openFiles() (err error) {
	if f.into, err = detach(f.x.v2, f.name); err != nil {
		return err
	}
	// The v2 tree counts CPU time without any controller, so this one file does on Hybrid as well, and
	// v1's cpuacct is not needed.
	if f.cpuFile, err = openFile(f.x.v2, f.name+"/cpu.stat", unix.O_RDONLY); err != nil {
		return err
	}
	if f.group.tree.mode == Unified {
		return nil
	}
	f.tasks = make([]*os.File, 0, numControllers)
	for c, dir := range f.x.of {
		if dir == nil || slices.Contains(f.x.of[:c], dir) {
			continue
		}
		file := "tasks"
		if slices.Contains(f.own, dir) {
			file = f.name + "/tasks"
		}
		tasks, err := openFile(dir, file, unix.O_WRONLY)
		if err != nil {
			return err
		}
		f.tasks = append(f.tasks, tasks)
	}
	return nil
}

// detach gives a directory as the root of a mount of its own that is mounted nowhere, so that no way
// leads up from it.
func detach(dir *os.File, name string) (*os.File, error) {
	fd := -1
	err := retry(func() (err error) {
		fd, err = unix.OpenTree(int(dir.Fd()), name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open_tree", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Into is the leaf in the v2 tree, for clone3 with CLONE_INTO_CGROUP. It is the root of a detached
// mount: ".." stays inside.
func (f *Leaf) Into() *os.File { return f.into }

// Tasks are write-only files, one of each v1 hierarchy. The process to be limited writes "0" to each,
// which moves it; it needs no right of its own for that. Nil on Unified, where Into does all.
func (f *Leaf) Tasks() []*os.File { return f.tasks }

// CPUFile tells the CPU time used so far, for whoever enforces a limit of it: in µs, on the line
// "usage_usec" of v2's cpu.stat.
func (f *Leaf) CPUFile() *os.File { return f.cpuFile }

// CPUFileIsV1 says whether CPUFile is v1's cpuacct.usage, a bare number of ns. On no supported kernel
// it has to be.
func (f *Leaf) CPUFileIsV1() bool { return false }

// OOMEvents is an eventfd that becomes readable when the leaf, or a group above it, is out of memory
// and the kernel is about to kill one process, for whoever then kills the rest; and when the leaf is
// removed. It is nil unless Limits.OOMGroup was asked for on Hybrid; on Unified the kernel kills them
// all by itself.
func (f *Leaf) OOMEvents() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.oomGroup || f.oomEvents != nil || f.x == nil {
		return f.oomEvents, nil
	}
	dir := f.x.of[memory]
	control, err := openFile(dir, f.name+"/memory.oom_control", unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("watch memory of %s: %w", f.name, err)
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	events := os.NewFile(uintptr(fd), "memory.oom_control")
	registration := strconv.Itoa(fd) + " " + strconv.Itoa(int(control.Fd()))
	if err := write(dir, f.name+"/cgroup.event_control", registration); err != nil {
		events.Close()
		return nil, fmt.Errorf("watch memory of %s: %w", f.name, err)
	}
	f.oomEvents = events
	return events, nil
}

// Usage is what was used so far; after the end, in all. The error is fs.ErrNotExist when the leaf was
// removed.
func (f *Leaf) Usage() (Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.x == nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", f.name, fs.ErrNotExist)
	}
	var u values
	err := u.readCPUFile(f.cpuFile)
	if err == nil {
		err = u.readGroup(f.group.tree.mode, f.x, f.name+"/")
	}
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", f.name, err)
	}
	return u.usage(), nil
}

// Kill sends SIGKILL to all processes of the leaf, also those that are just being forked. In a removed
// one there are none.
func (f *Leaf) Kill() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.x == nil {
		return nil
	}
	if err := write(f.x.v2, f.name+"/cgroup.kill", "1"); err != nil {
		return fmt.Errorf("kill %s: %w", f.name, err)
	}
	return nil
}

// leafDeadline bounds the time that Remove waits for killed processes to be gone.
const leafDeadline = 10 * time.Second

// Remove removes the leaf and closes its files. Processes still in it are killed and waited for, at
// most ten seconds. It may be called again.
func (f *Leaf) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.x == nil {
		return nil
	}
	f.closeFiles()
	err := f.removeEmpty()
	if errors.Is(err, unix.EBUSY) {
		ctx, cancel := context.WithTimeout(context.Background(), leafDeadline)
		defer cancel()
		err = f.group.tree.remove(ctx, f.group.path("x/"+f.name))
	}
	if err != nil {
		return err
	}
	f.group.release(f.x)
	f.x = nil
	return nil
}

// removeEmpty is enough when all has ended.
func (f *Leaf) removeEmpty() error {
	for _, dir := range f.own {
		err := removeDir(dir, f.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove group: %w", err)
		}
	}
	return nil
}

// Close closes the leaf's files. The group stays, for Remove or for the sandbox's Remove.
func (f *Leaf) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeFiles()
	return nil
}

func (f *Leaf) closeFiles() {
	for _, file := range append(f.tasks, f.into, f.cpuFile, f.oomEvents) {
		if file != nil {
			file.Close() // nothing was written through it here; a second time changes nothing
		}
	}
}
