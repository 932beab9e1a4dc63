// Package cgroup gives each sandbox and each of its executions a group of the kernel's cgroups, with
// limits, and tells what was used.
//
//	tree, err := cgroup.Open("")                                  // /husk, with host-wide limits
//	group, err := tree.Create("a1", cgroup.Limits{Memory: 512 << 20}, cgroup.Owner{UID: 100000, GID: 100000})
//	leaf, err := group.Leaf("1", cgroup.Limits{Memory: 64 << 20, PIDs: 32})
//	// clone3 with CLONE_INTO_CGROUP and leaf.Into(); on a hybrid host the child writes "0" to each of leaf.Tasks()
//	usage, err := leaf.Usage()
//	err = leaf.Remove()
//	err = group.Remove(ctx)
//
// The groups, below each hierarchy's root:
//
//	husk/              all sandboxes: memory 80 % of the host's, no swap, pids 80 % of the host's
//	husk/<id>/guest    made by the engine, at Group.GuestPath
//	husk/<id>/x        the sandbox's limits; Kill, Freeze and the out-of-memory killer act here
//	husk/<id>/x/<n>    one for each execution
//
// Guarantees: a limit that was asked for is in force before anything can run in the group, or there is
// an error; swap is 0 wherever memory is limited; Remove leaves no process and no directory in any
// hierarchy; nothing waits without a deadline and nothing waits by sleeping.
//
// Limits: Linux 6.1 or later, root, and either cgroup v2 with the cpu, memory and pids controllers
// (Unified) or those on v1 and a v2 tree beside them (Hybrid). Memory at least MinMemory, CPUs at least
// MinCPUs.
//
// It does not protect against root on the host, nor against a process that was never put into a leaf.
// A group's limits hold for all that is in it together, so one execution can use up the sandbox's.
// Of containerd/cgroups only the part without protobuf could be had: its cgroup1 and cgroup2 packages
// cost every start of the program more than this package costs an execution.
package cgroup

import (
	"fmt"
	"strings"
)

// Mode is how this host's controllers are mounted.
type Mode int

// The modes.
const (
	Unified Mode = iota + 1 // all controllers in the v2 tree
	Hybrid                  // controllers in v1 hierarchies, and a v2 tree that has cgroup.kill and cgroup.freeze
)

func (m Mode) String() string {
	switch m {
	case Unified:
		return "unified"
	case Hybrid:
		return "hybrid"
	}
	return fmt.Sprintf("mode %d", int(m))
}

// Owner may clone processes into the groups of a sandbox: root of its user namespace, as host ids.
type Owner struct {
	UID, GID int
}

// UnavailableError says what a sandbox needs of this host's cgroups and does not get.
type UnavailableError struct {
	What  string // "memory controller"
	Where string // a mount point or file, or empty
	Fix   string // what to do
	Err   error  // the kernel's answer, or nil
}

func (e *UnavailableError) Error() string {
	var b strings.Builder
	b.WriteString("no " + e.What)
	if e.Where != "" {
		b.WriteString(" at " + e.Where)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Fix != "" {
		b.WriteString(": " + e.Fix)
	}
	return b.String()
}

// Unwrap gives the kernel's answer.
func (e *UnavailableError) Unwrap() error { return e.Err }

// maxName is the longest name of a sandbox or execution, in bytes.
const maxName = 64

// checkName refuses whatever is not [a-z0-9][a-z0-9_.-]{0,63}, so that a name is never a path.
func checkName(name string) error {
	ok := name != "" && len(name) <= maxName && !strings.ContainsRune("_.-", rune(name[0]))
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("_.-", c) >= 0
	}
	if !ok {
		return fmt.Errorf("group name %q: want [a-z0-9][a-z0-9_.-]{0,%d}", name, maxName-1)
	}
	return nil
}
