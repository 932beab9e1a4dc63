package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is one sandbox's: <id>/guest is libcontainer's, <id>/x holds the limits and the leaves.
type Group struct {
	tree  *Tree
	id    string
	owner Owner
	dirs  []dir // x in the v2 hierarchy first, then in the v1 ones that are used
}

// dir is a group's directory in one hierarchy.
type dir struct {
	hierarchy
	fd *os.File
}

// Create makes the groups of sandbox id and sets the limits on x. On an error nothing is left.
func (t *Tree) Create(id string, l Limits, owner Owner) (*Group, error) {
	list, err := l.settings(t.mode, t.swap)
	if err != nil {
		return nil, err
	}
	g := &Group{tree: t, id: id, owner: owner}
	if err := g.create(l, list); err != nil {
		_ = g.Remove(context.Background())
		return nil, err
	}
	return g, nil
}

func (g *Group) create(l Limits, list []setting) error {
	for _, h := range g.tree.used(l) {
		top := filepath.Join(h.mount, g.tree.parent, g.id)
		for _, path := range []string{top, filepath.Join(top, "x")} {
			if err := os.Mkdir(path, 0o755); err != nil {
				return fmt.Errorf("make group: %w", err)
			}
			if err := g.tree.prepare(h, path); err != nil {
				return err
			}
		}
		if h.v2 {
			// the common ancestor of guest and leaves: who clones a child into one needs to own it
			if err := os.Chown(filepath.Join(top, "cgroup.procs"), g.owner.UID, g.owner.GID); err != nil {
				return fmt.Errorf("hand over group: %w", err)
			}
		}
	}
	if err := g.open(); err != nil {
		return err
	}
	for i := range g.dirs {
		if err := g.tree.apply(&g.dirs[i], "", list); err != nil {
			return err
		}
	}
	return nil
}

// used are the hierarchies for a sandbox with these limits; v1's cpuset only where it is asked for, since
// each hierarchy costs at every execution.
func (t *Tree) used(l Limits) []hierarchy {
	list := append([]hierarchy{t.v2}, t.v1...)
	if h := t.with("cpuset"); t.mode == Hybrid && l.CPUSet != "" && h != nil {
		list = append(list, *h)
	}
	return list
}

// prepare makes a new directory able to have children with our controllers.
func (t *Tree) prepare(h hierarchy, path string) error {
	if h.v2 && t.mode == Unified {
		return t.enable(path)
	}
	if h.has("cpuset") {
		// a v1 cpuset starts empty and then takes no process
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := copyFrom(filepath.Dir(path), path, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyFrom takes a value over from the nearest ancestor that has one, and gives it to those between.
func copyFrom(from, to, file string) error {
	text, err := os.ReadFile(filepath.Join(from, file))
	if err != nil {
		return fmt.Errorf("read cpuset: %w", err)
	}
	if strings.TrimSpace(string(text)) == "" {
		if err := copyFrom(filepath.Dir(from), from, file); err != nil {
			return err
		}
		return copyFrom(from, to, file)
	}
	return writeFile(unix.AT_FDCWD, filepath.Join(to, file), strings.TrimSpace(string(text)))
}

// apply writes those settings whose controller this directory has; below names a leaf, or is empty.
func (t *Tree) apply(d *dir, below string, list []setting) error {
	for _, s := range list {
		if t.mode == Hybrid && !d.has(s.controller) {
			continue
		}
		err := writeFile(d.number(), filepath.Join(below, s.file), s.value)
		if s.optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: cgroup controller %s: %w", ErrUnavailable, s.controller, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dir) number() int { return int(d.fd.Fd()) }

// open takes hold of x in every hierarchy that has it.
func (g *Group) open() error {
	for _, h := range append(g.tree.used(Limits{}), g.tree.cpuset()...) {
		path := filepath.Join(h.mount, g.tree.parent, g.id, "x")
		fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) && h.has("cpuset") {
			continue // was not asked for
		}
		if err != nil {
			g.closeDirs()
			return fmt.Errorf("open group %s: %w", path, err)
		}
		g.dirs = append(g.dirs, dir{h, os.NewFile(uintptr(fd), path)})
	}
	return nil
}

// cpuset is v1's, if it is a hierarchy of its own.
func (t *Tree) cpuset() []hierarchy {
	if h := t.with("cpuset"); t.mode == Hybrid && h != nil {
		return []hierarchy{*h}
	}
	return nil
}

func (g *Group) closeDirs() {
	for _, d := range g.dirs {
		d.fd.Close()
	}
	g.dirs = nil
}

// Load takes hold of an existing sandbox's groups: fs.ErrNotExist if there are none. A group that is
// only partly there can be removed, not used.
func (t *Tree) Load(id string) (*Group, error) {
	g := &Group{tree: t, id: id}
	there := false
	for _, h := range t.all() {
		there = there || exists(filepath.Join(h.mount, t.parent, id))
	}
	if !there {
		return nil, fmt.Errorf("load group %s: %w", id, os.ErrNotExist)
	}
	var st unix.Stat_t
	if unix.Stat(filepath.Join(g.top(), "cgroup.procs"), &st) == nil {
		g.owner = Owner{int(st.Uid), int(st.Gid)}
	}
	return g, nil
}

// top is the sandbox's directory in the v2 hierarchy.
func (g *Group) top() string { return filepath.Join(g.tree.v2.mount, g.tree.parent, g.id) }

// GuestPath is the guest's group, relative to each hierarchy's root, for libcontainer to make.
func (g *Group) GuestPath() string { return filepath.Join(g.tree.parent, g.id, "guest") }

// Close gives up what Leaf keeps open. The groups stay.
func (g *Group) Close() error {
	g.closeDirs()
	return nil
}
