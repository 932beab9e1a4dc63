package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// Tree is husk's part of the host's hierarchies.
type Tree struct {
	mode   Mode
	parent string      // "/husk"
	v2     hierarchy   // holds everything on Unified; on Hybrid kill, freeze and events
	v1     []hierarchy // Hybrid: those with a controller that we use
	others []hierarchy // Hybrid: the rest, where libcontainer puts the guest as well
	swap   swap
}

// needed are the controllers without which there is no sandbox.
func needed() []string { return []string{"cpu", "memory", "pids"} }

// Open finds the hierarchies and makes husk's group in them, below parent ("" is "/husk"), with limits
// for the host's sake: 80 % of its memory, half of its process ids.
func Open(parent string) (*Tree, error) {
	if parent == "" {
		parent = "/husk"
	}
	if !filepath.IsAbs(parent) || filepath.Clean(parent) != parent || parent == "/" {
		return nil, fmt.Errorf("cgroup parent %q: want an absolute path such as /husk", parent)
	}
	list, err := readMounts()
	if err != nil {
		return nil, err
	}
	t := &Tree{parent: parent, swap: swap{present: hasSwap()}}
	switch cgroups.Mode() {
	case cgroups.Unified:
		t.mode = Unified
	case cgroups.Hybrid:
		t.mode = Hybrid
	default:
		return nil, fmt.Errorf("%w: no cgroup v2 is mounted at /sys/fs/cgroup or /sys/fs/cgroup/unified", ErrUnavailable)
	}
	if err := t.sort(list); err != nil {
		return nil, err
	}
	return t, t.makeParent()
}

// sort tells the hierarchies that we use from the others.
func (t *Tree) sort(list []hierarchy) error {
	found := false
	for _, h := range list {
		switch {
		case h.v2:
			t.v2, found = h, true
		case t.mode == Hybrid && slices.ContainsFunc([]string{"cpu", "cpuacct", "memory", "pids"}, h.has):
			t.v1 = append(t.v1, h)
		default:
			t.others = append(t.others, h)
		}
	}
	if !found {
		return fmt.Errorf("%w: no cgroup2 mount in /proc/self/mountinfo", ErrUnavailable)
	}
	if t.mode == Unified {
		return t.checkUnified()
	}
	for _, c := range append(needed(), "cpuacct") {
		if t.with(c) == nil {
			return fmt.Errorf("%w: cgroup controller %s is not mounted", ErrUnavailable, c)
		}
	}
	t.swap.accounted = exists(filepath.Join(t.with("memory").mount, "memory.memsw.limit_in_bytes"))
	return nil
}

func (t *Tree) checkUnified() error {
	text, err := os.ReadFile(filepath.Join(t.v2.mount, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read cgroup controllers: %w", err)
	}
	for _, c := range needed() {
		if !slices.Contains(strings.Fields(string(text)), c) {
			return fmt.Errorf("%w: cgroup controller %s is not in %s/cgroup.controllers: it is disabled at boot or not delegated to here", ErrUnavailable, c, t.v2.mount)
		}
	}
	return nil
}

// with is the v1 hierarchy that has a controller, or nil.
func (t *Tree) with(controller string) *hierarchy {
	for i := range t.v1 {
		if t.v1[i].has(controller) {
			return &t.v1[i]
		}
	}
	for i := range t.others {
		if t.others[i].has(controller) {
			return &t.others[i]
		}
	}
	return nil
}

// Mode says how this host mounts its groups.
func (t *Tree) Mode() Mode { return t.mode }

// CoversSwap says whether memory limits cover swap here. They do not on a hybrid host that has swap but
// boots without swap accounting; a memory limit is an error there unless Limits.AllowSwap is set.
func (t *Tree) CoversSwap() bool { return t.mode == Unified || t.swap.accounted || !t.swap.present }

// ViewDirs are the directories below /sys/fs/cgroup that a sandbox should see: "" for the v2 tree, else
// the v1 hierarchies where programs look for their limits, named as they are mounted.
func (t *Tree) ViewDirs() []string {
	if t.mode == Unified {
		return []string{""}
	}
	dirs := []string{strings.Join(t.with("memory").controllers, ",")}
	if cpu := strings.Join(t.with("cpu").controllers, ","); cpu != dirs[0] {
		dirs = append(dirs, cpu)
	}
	return dirs
}

// makeParent makes husk's own group where it is not there yet.
func (t *Tree) makeParent() error {
	if t.mode == Unified {
		if err := t.enableDown(); err != nil {
			return err
		}
	}
	for _, h := range append([]hierarchy{t.v2}, t.v1...) {
		made, err := makePath(h.mount, t.parent)
		if err != nil {
			return err
		}
		if made {
			if err := t.hostLimits(h); err != nil {
				return err
			}
		}
	}
	if t.mode == Unified {
		return t.enable(filepath.Join(t.v2.mount, t.parent))
	}
	return nil
}

// makePath makes each directory of path below mount; made is about the last one.
func makePath(mount, path string) (made bool, err error) {
	dir := mount
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		dir = filepath.Join(dir, name)
		if made, err = makeDir(dir); err != nil {
			return made, err
		}
	}
	return made, nil
}

// enableDown enables the controllers from the root down to the parent of our own group.
func (t *Tree) enableDown() error {
	dir := t.v2.mount
	for name := range strings.SplitSeq(strings.Trim(t.parent, "/"), "/") {
		err := t.enable(dir)
		if errors.Is(err, unix.EBUSY) && dir == t.v2.mount && exists(filepath.Join(dir, "cgroup.type")) {
			// Not the host's root: we are in a container, whose own processes sit in its root, and a
			// group with processes cannot hand on controllers (cgroups(7), "no internal processes").
			if err = evacuate(dir); err == nil {
				err = t.enable(dir)
			}
		}
		if err != nil {
			return err
		}
		dir = filepath.Join(dir, name)
		if _, err := makeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// enable lets the children of dir have the controllers that we need, and cpuset where it is.
func (t *Tree) enable(dir string) error {
	var buf [256]byte
	has, err := readFile(unix.AT_FDCWD, filepath.Join(dir, "cgroup.controllers"), buf[:])
	if err != nil {
		return err
	}
	var buf2 [256]byte
	on, err := readFile(unix.AT_FDCWD, filepath.Join(dir, "cgroup.subtree_control"), buf2[:])
	if err != nil {
		return err
	}
	var want []string
	for _, c := range append(needed(), "cpuset") {
		if slices.Contains(strings.Fields(string(has)), c) && !slices.Contains(strings.Fields(string(on)), c) {
			want = append(want, "+"+c)
		}
	}
	if len(want) == 0 {
		return nil
	}
	err = writeFile(unix.AT_FDCWD, filepath.Join(dir, "cgroup.subtree_control"), strings.Join(want, " "))
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w: %s is mounted read-only: remount it read-write, or run husk where it is writable", ErrUnavailable, t.v2.mount)
	}
	return err
}

// evacuate moves the processes of a container's root group into a child of it.
func evacuate(root string) error {
	dir := filepath.Join(root, "init")
	if _, err := makeDir(dir); err != nil {
		return err
	}
	for range 10 { // new ones may be forked meanwhile
		text, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
		if err != nil {
			return fmt.Errorf("move processes out of the root group: %w", err)
		}
		if len(strings.Fields(string(text))) == 0 {
			return nil
		}
		for pid := range strings.FieldsSeq(string(text)) {
			err := writeFile(unix.AT_FDCWD, filepath.Join(dir, "cgroup.procs"), pid)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return fmt.Errorf("move processes out of the root group %s: new ones keep coming", root)
}

// hostLimits keep all sandboxes together from taking the host down.
func (t *Tree) hostLimits(h hierarchy) error {
	dir := filepath.Join(h.mount, t.parent)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("read memory size: %w", err)
	}
	memory := int64(info.Totalram) * int64(info.Unit) / 10 * 8
	switch {
	case t.mode == Unified:
		if err := writeFile(unix.AT_FDCWD, filepath.Join(dir, "memory.max"), decimal(memory)); err != nil {
			return err
		}
		return writeFile(unix.AT_FDCWD, filepath.Join(dir, "pids.max"), decimal(hostPIDs()))
	case h.has("memory"):
		// from Linux 5.11 on it is always 1, and older files refuse a second 1
		_ = writeFile(unix.AT_FDCWD, filepath.Join(dir, "memory.use_hierarchy"), "1")
		return writeFile(unix.AT_FDCWD, filepath.Join(dir, "memory.limit_in_bytes"), decimal(memory))
	case h.has("pids"):
		return writeFile(unix.AT_FDCWD, filepath.Join(dir, "pids.max"), decimal(hostPIDs()))
	}
	return nil
}

func hostPIDs() int64 {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || perr != nil {
		n = 32768
	}
	return n / 2
}

// List gives the ids of all groups that exist in any hierarchy.
func (t *Tree) List() ([]string, error) {
	seen := map[string]bool{}
	var ids []string
	for _, h := range t.all() {
		entries, err := os.ReadDir(filepath.Join(h.mount, t.parent))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list groups: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() && !seen[e.Name()] {
				seen[e.Name()] = true
				ids = append(ids, e.Name())
			}
		}
	}
	return ids, nil
}

// all are the hierarchies in which a sandbox may have groups.
func (t *Tree) all() []hierarchy {
	return slices.Concat([]hierarchy{t.v2}, t.v1, t.others)
}
