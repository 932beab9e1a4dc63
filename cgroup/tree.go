package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultParent is the group that holds all sandboxes, below each hierarchy's root.
const DefaultParent = "/husk"

// Tree is the groups of all sandboxes. It is safe for concurrent use, by several processes as well.
type Tree struct {
	mode     Mode
	parent   string // without the leading slash
	all      []*hierarchy
	v2       *hierarchy
	of       [numControllers]*hierarchy // v2 itself on Unified; of cpuset nil where there is none
	swapFile bool
}

// Open finds out how this host's controllers are mounted and makes the group that holds all sandboxes,
// with its host-wide limits unless it has some already. Empty parent: DefaultParent. It is relative to
// each hierarchy's root. The error is an UnavailableError when the host lacks something.
//
// In a container whose cgroup root holds processes, which cgroup v2 does not allow beside limited
// groups, it moves them to the group /init first.
func Open(parent string) (*Tree, error) {
	if parent == "" {
		parent = DefaultParent
	}
	clean := strings.TrimPrefix(path.Clean("/"+parent), "/")
	if clean == "" || slices.Contains(strings.Split(parent, "/"), "..") {
		return nil, fmt.Errorf("cgroup parent %q: want a path of a group below the root", parent)
	}
	all, err := findHierarchies()
	if err != nil {
		return nil, err
	}
	t := &Tree{parent: clean, all: all}
	if err := t.choose(); err != nil {
		return nil, err
	}
	if err := t.makeParent(); err != nil {
		return nil, err
	}
	return t, nil
}

func findHierarchies() ([]*hierarchy, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mounts, err := parseMounts(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	all, err := openHierarchies(mounts)
	if err != nil {
		return nil, fmt.Errorf("open cgroup mount: %w", err)
	}
	return all, nil
}

// choose finds the hierarchy of each controller.
func (t *Tree) choose() error {
	i := slices.IndexFunc(t.all, func(h *hierarchy) bool { return h.v2 })
	if i < 0 {
		return &UnavailableError{What: "cgroup v2 tree", Fix: "mount one: mkdir -p /sys/fs/cgroup/unified && " +
			"mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"}
	}
	t.v2 = t.all[i]
	text, err := readText(t.v2.root, "cgroup.controllers")
	if err != nil {
		return fmt.Errorf("read controllers of %s: %w", t.v2.point, err)
	}
	if err := t.assign(strings.Fields(text)); err != nil {
		return err
	}
	for _, h := range t.used(true) {
		if h.readOnly {
			return &UnavailableError{What: "writable cgroup file system", Where: h.point, Err: unix.EROFS,
				Fix: "mount it read-write; in a container, run that one privileged or with a writable cgroup mount"}
		}
	}
	return nil
}

// assign is Unified if the v2 tree has all controllers that we cannot do without, else Hybrid.
func (t *Tree) assign(v2 []string) error {
	t.mode = Unified
	for c := memory; c < cpuset; c++ {
		if !slices.Contains(v2, c.String()) {
			t.mode = Hybrid
		}
	}
	var missing []string
	v1 := false
	for c := memory; c < numControllers; c++ {
		i := slices.IndexFunc(t.all, func(h *hierarchy) bool { return h.has(c.String()) })
		switch {
		case t.mode == Unified && slices.Contains(v2, c.String()):
			t.of[c] = t.v2
		case t.mode == Hybrid && i >= 0:
			t.of[c], v1 = t.all[i], true
		case c != cpuset:
			missing = append(missing, c.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !v1 { // a v2 host, on which only these are switched off
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(v2, name) })
	}
	return t.lacking(missing, v1)
}

func (t *Tree) lacking(missing []string, v1 bool) error {
	e := &UnavailableError{What: strings.Join(missing, ", ") + " controller", Where: t.v2.point}
	e.Fix = "boot with cgroup_enable=" + missing[0] + ", or have the group above delegate it (systemd: Delegate=yes)"
	if v1 {
		e.Where, e.Fix = "", "mount it as the other v1 controllers are, or boot with systemd.unified_cgroup_hierarchy=1"
	}
	return e
}

// Mode says how this host's controllers are mounted.
func (t *Tree) Mode() Mode { return t.mode }

// used are the hierarchies that a sandbox's groups are made in, v2 first.
func (t *Tree) used(cpusets bool) []*hierarchy {
	list := []*hierarchy{t.v2}
	for c, h := range t.of {
		if h != nil && (cpusets || controller(c) != cpuset) && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// ViewDirs are the directories below /sys/fs/cgroup at which a program expects its own limits: "" on
// Unified, else those of the v1 controllers that language runtimes insist on, by which names they can
// be mounted as well.
func (t *Tree) ViewDirs() []string {
	if t.mode == Unified {
		return []string{""}
	}
	var dirs []string
	for _, name := range []string{"memory", "cpu", "cpuacct", "cpuset"} {
		for _, h := range t.all {
			if dir := strings.Join(h.v1Controllers(), ","); h.has(name) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// v1Controllers are those among a hierarchy's mount options.
func (h *hierarchy) v1Controllers() []string {
	known := []string{"cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "net_cls",
		"perf_event", "net_prio", "hugetlb", "pids", "rdma", "misc"}
	return slices.DeleteFunc(slices.Clone(h.options), func(o string) bool { return !slices.Contains(known, o) })
}

// List gives the ids of the sandboxes that have a group in any hierarchy.
func (t *Tree) List() ([]string, error) {
	var ids []string
	for _, h := range t.all {
		names, err := children(h.root, t.parent)
		if err != nil {
			return nil, fmt.Errorf("list groups in %s: %w", h.point, err)
		}
		for _, name := range names {
			if checkName(name) == nil {
				ids = append(ids, name)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Load gives the group of a sandbox that another process may have made. The error is fs.ErrNotExist
// when it is in no hierarchy. It may be there in part; then Remove removes that part.
func (t *Tree) Load(id string) (*Group, error) {
	if err := checkName(id); err != nil {
		return nil, err
	}
	g := &Group{tree: t, id: id}
	for _, h := range append([]*hierarchy{t.v2}, t.all...) {
		there, err := exists(h.root, g.path(""))
		if err != nil {
			return nil, fmt.Errorf("look for group %s in %s: %w", id, h.point, err)
		}
		if there {
			return g, nil
		}
	}
	return nil, fmt.Errorf("group %s: %w", id, fs.ErrNotExist)
}

// Create makes the groups of a new sandbox. The error is fs.ErrExist when there are some of that id.
func (t *Tree) Create(id string, l Limits, owner Owner) (*Group, error) {
	if err := errors.Join(checkName(id), l.validate(), t.checkSwap(l)); err != nil {
		return nil, err
	}
	g := &Group{tree: t, id: id}
	if err := makeDir(t.v2.root, g.path("")); err != nil {
		return nil, fmt.Errorf("make group %s: %w", id, err)
	}
	if err := g.build(l, owner); err != nil {
		g.Close()
		g.removeEmpty()
		return nil, fmt.Errorf("make group %s: %w", id, err)
	}
	return g, nil
}
