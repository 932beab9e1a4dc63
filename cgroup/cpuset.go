package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// limitCPUSet sets x's CPUs. On Hybrid only sandboxes that have some are in the cpuset hierarchy at all.
func (g *Group) limitCPUSet(cpus string) error {
	if err := g.joinCPUSets(); err != nil {
		return err
	}
	return g.tree.setCPUs(g.path("x"), cpus)
}

// joinCPUSets prepares the groups down to x for having sets of CPUs below.
func (g *Group) joinCPUSets() error {
	t := g.tree
	h := t.of[cpuset]
	if h == nil {
		return &UnavailableError{What: "cpuset controller", Where: t.v2.point, Fix: "do without a CPU set"}
	}
	for dir := range ancestors(g.path("x")) {
		var err error
		switch {
		case t.mode == Unified:
			err = t.enable(dir, cpuset)
		case dir != ".":
			err = t.makeCPUSet(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeCPUSet makes a group in a v1 cpuset hierarchy. It starts without CPUs and memory nodes, and
// cannot hold a process before it has both.
func (t *Tree) makeCPUSet(dir string) error {
	h := t.of[cpuset]
	if _, err := ensureDir(h.root, dir); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := readText(h.root, path.Join(dir, file))
		if err == nil && strings.TrimSpace(text) == "" {
			text, err = readText(h.root, path.Join(path.Dir(dir), file))
			if err == nil {
				err = write(h.root, path.Join(dir, file), strings.TrimSpace(text))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setCPUs gives a group CPUs, each of which the one above must have: v2 would take others silently.
func (t *Tree) setCPUs(dir, cpus string) error {
	h, file := t.of[cpuset], "cpuset.cpus.effective"
	if t.mode == Hybrid {
		file = "cpuset.cpus"
	}
	text, err := readText(h.root, path.Join(path.Dir(dir), file))
	if err != nil {
		return err
	}
	want, err := parseCPUs(cpus)
	if err != nil {
		return err
	}
	has, err := parseCPUs(text)
	if err != nil {
		return err
	}
	if !want.within(has) {
		return fmt.Errorf("CPU set %q: the group above has only %s", cpus, strings.TrimSpace(text))
	}
	return write(h.root, path.Join(dir, "cpuset.cpus"), cpus)
}

// openWithCPUSets exchanges what open gave for what a leaf needs that has CPUs of its own.
func (g *Group) openWithCPUSets(x *dirs) (*dirs, error) {
	if g.tree.mode == Hybrid && x.of[cpuset] != nil {
		return x, nil
	}
	if err := g.joinCPUSets(); err != nil {
		g.release(x)
		g.leaveCPUSets(err)
		return nil, err
	}
	if g.tree.mode == Unified {
		return x, nil
	}
	g.release(x) // is from before there were CPU sets
	_ = g.Close()
	x, _, err := g.open()
	if err != nil {
		g.leaveCPUSets(err)
	}
	return x, err
}

// leaveCPUSets removes what joinCPUSets made for a sandbox that was removed meanwhile by somebody who
// could not know of it.
func (g *Group) leaveCPUSets(err error) {
	if h := g.tree.of[cpuset]; g.tree.mode == Hybrid && h != nil && errors.Is(err, fs.ErrNotExist) {
		_ = h.removeTree(g.path(""))
	}
}

// limitLeafCPUs gives CPUs to a leaf that has its directories.
func (g *Group) limitLeafCPUs(name, cpus string) error {
	leaf := path.Join(g.path("x"), name)
	if g.tree.mode == Hybrid {
		if err := g.tree.makeCPUSet(leaf); err != nil {
			return err
		}
	}
	return g.tree.setCPUs(leaf, cpus)
}
