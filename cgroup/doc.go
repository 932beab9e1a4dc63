// Package cgroup bounds and measures sandboxes by control groups, on pure cgroup v2 and on hybrid hosts
// where v1 controllers are mounted beside a v2 tree.
//
//	tree, err := cgroup.Open("")                       // /husk in each hierarchy
//	group, err := tree.Create(id, limits, owner)       // /husk/<id>/x, and room for /husk/<id>/guest
//	leaf, err := group.Leaf("1", limits)               // /husk/<id>/x/1, for one execution
//	// the guest clones a child into leaf.Into(), which writes "0" to each of leaf.Tasks()
//	usage, err := leaf.Usage()
//	err = leaf.Remove()
//	err = group.Remove(ctx)
//
// Guarantees: a limit that was asked for is set before anything runs, or there is an error that names
// what is missing; swap is 0 wherever the host has swap; Remove leaves nothing in any hierarchy. Numbers
// that a host cannot measure are nil.
//
// Limits: memory at least 4 MiB, CPU at least 1 ms in 100 ms. It needs Linux 5.14 (cgroup.kill), root, the
// controllers cpu, memory and pids, and a writable cgroup file system. It does not limit block I/O.
package cgroup

import "errors"

// ErrUnavailable: this host lacks a controller or mount that is needed; the error's text names it.
var ErrUnavailable = errors.New("not available on this host")

// Mode is how the host mounts its control groups.
type Mode int

// The modes.
const (
	Unified Mode = iota // pure v2
	Hybrid              // v1 controllers, v2 without them
)

// Limits bound a group; the zero value of a field leaves that resource alone.
type Limits struct {
	Memory int64   // bytes, swap 0
	CPUs   float64 // how many CPUs' time, per 100 ms
	CPUSet string  // "0-1,3"
	PIDs   int64   // processes and threads
	// AllowSwap accepts a memory limit that does not cover swap where the host cannot give that.
	AllowSwap bool
	OOMGroup  bool // out of memory kills the whole group (v2; on hybrid see Leaf.OOMEvents)
}

// MinMemory is the smallest memory limit: below, not even a shell starts.
const MinMemory = 4 << 20

// Owner is the host id of the sandbox's mapped root, who must be able to move its children into leaves.
type Owner struct{ UID, GID int }
