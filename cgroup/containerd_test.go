package cgroup

import (
	"testing"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
)

// TestRootAgreesWithContainerd: containerd's packages, which are too slow to start for husk itself, see the
// same mode and the same limits.
func TestRootAgreesWithContainerd(t *testing.T) {
	tree := testTree(t)
	want := map[Mode]cgroups.CGMode{Unified: cgroups.Unified, Hybrid: cgroups.Hybrid}[tree.Mode()]
	if got := cgroups.Mode(); got != want {
		t.Errorf("containerd says mode %v, we say %v", got, tree.Mode())
	}
	const memory, pids = 64 << 20, 10
	testGroup(t, tree, Limits{Memory: memory, PIDs: pids})
	gotMemory, gotPIDs := limitsByContainerd(t, tree.Mode(), "/"+tree.parent+"/a1/x")
	if gotMemory != memory || gotPIDs != pids {
		t.Errorf("containerd reads memory %d, pids %d; want %d, %d", gotMemory, gotPIDs, memory, pids)
	}
}

func limitsByContainerd(t *testing.T, mode Mode, group string) (memory, pids uint64) {
	t.Helper()
	if mode == Unified {
		m, err := cgroup2.Load(group)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return s.Memory.UsageLimit, s.Pids.Limit
	}
	c, err := cgroup1.Load(cgroup1.StaticPath(group), func(c *cgroup1.InitConfig) error {
		c.InitCheck = cgroup1.AllowAny
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		t.Fatal(err)
	}
	return s.Memory.Usage.Limit, s.Pids.Limit
}
