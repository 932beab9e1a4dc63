package cgroup

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	all := Limits{Memory: 64 << 20, CPUs: 1.5, PIDs: 7, OOMGroup: true, CPUSet: "0-1"}
	for _, c := range []struct {
		name   string
		limits Limits
		mode   Mode
		swap   bool
		want   []setting
	}{
		{"nothing", Limits{}, Unified, true, nil},
		{"nothing on hybrid", Limits{}, Hybrid, false, nil},
		{"all", all, Unified, true, []setting{
			{memory, "memory.max", "67108864"}, {memory, "memory.swap.max", "0"}, {memory, "memory.oom.group", "1"},
			{pids, "pids.max", "7"}, {cpu, "cpu.max", "150000 100000"},
		}},
		// memsw after the plain limit, or the kernel refuses it
		{"all on hybrid", all, Hybrid, true, []setting{
			{memory, "memory.limit_in_bytes", "67108864"}, {memory, "memory.memsw.limit_in_bytes", "67108864"},
			{pids, "pids.max", "7"}, {cpu, "cpu.cfs_quota_us", "150000"},
		}},
		{"least", Limits{Memory: MinMemory, CPUs: MinCPUs}, Unified, true, []setting{
			{memory, "memory.max", "4194304"}, {memory, "memory.swap.max", "0"}, {cpu, "cpu.max", "1000 100000"},
		}},
		{"no swap file", Limits{Memory: MinMemory}, Unified, false, []setting{{memory, "memory.max", "4194304"}}},
		{"no swap file, hybrid", Limits{Memory: MinMemory}, Hybrid, false, []setting{{memory, "memory.limit_in_bytes", "4194304"}}},
		{"swap limited though allowed", Limits{Memory: MinMemory, AllowSwap: true}, Unified, true, []setting{
			{memory, "memory.max", "4194304"}, {memory, "memory.swap.max", "0"},
		}},
	} {
		if got := c.limits.settings(c.mode, c.swap); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCheckSwap(t *testing.T) {
	for _, mode := range []Mode{Unified, Hybrid} {
		tree := Tree{mode: mode, swapFile: true}
		tree.of[memory] = &hierarchy{mount: mount{point: "/m"}}
		if err := tree.checkSwap(Limits{Memory: MinMemory}); err != nil || !tree.CoversSwap() {
			t.Errorf("with a file to limit swap: %v", err)
		}
		tree.swapFile = false
		for _, l := range []Limits{{}, {PIDs: 1}, {Memory: MinMemory, AllowSwap: true}} {
			if err := tree.checkSwap(l); err != nil {
				t.Errorf("%+v: %v", l, err)
			}
		}
		if err := tree.checkSwap(Limits{Memory: MinMemory}); (err == nil) != tree.CoversSwap() {
			t.Errorf("CoversSwap is %v, and a limit gives %v", tree.CoversSwap(), err)
		} else if err != nil { // this machine has swap
			checkUnavailable(t, err, tree.swapName(), "/m", "swapoff")
		}
	}
}

func TestBadLimits(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		word   string
	}{
		{Limits{Memory: -1}, "memory limit of -1"},
		{Limits{Memory: math.MinInt64}, "memory"},
		{Limits{Memory: 1}, "minimum is 4194304"},
		{Limits{Memory: MinMemory - 1}, "memory limit of 4194303"},
		{Limits{CPUs: -0.5}, "limit of -0.5 CPUs"},
		{Limits{CPUs: 0.001}, "want 0.01"},
		{Limits{CPUs: 1e9}, "CPUs"},
		{Limits{CPUs: math.NaN()}, "limit of NaN CPUs"},
		{Limits{CPUs: math.Inf(1)}, "CPUs"},
		{Limits{PIDs: -3}, "limit of -3 pids"},
		{Limits{CPUSet: "x"}, `CPU set "x"`},
	} {
		checkError(t, c.limits.validate(), c.word)
	}
	if err := (Limits{Memory: MinMemory, CPUs: MinCPUs, PIDs: 1, CPUSet: "0-1,3"}).validate(); err != nil {
		t.Error(err)
	}
	// all that is wrong at once
	err := Limits{Memory: 1, CPUs: -1, PIDs: -1, CPUSet: "x"}.validate()
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four faults give %v", err)
	}
}

func TestParseCPUs(t *testing.T) {
	got, err := parseCPUs("0-2,5\n")
	if want := (cpuSet{0b100111}); err != nil || *got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = parseCPUs("8191"); err != nil || got[127] != 1<<63 {
		t.Errorf("the last CPU: %v", err)
	}
	for _, list := range []string{"", ",", "0,", "1-0", "-1", "0-", "a", "0-1-2", "8192", "99999999999", "0 1", "+1", "0\n1"} {
		if _, err := parseCPUs(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

func TestCPUSetWithin(t *testing.T) {
	for _, c := range []struct {
		inner, outer string
		want         bool
	}{{"0", "0-3", true}, {"0-3", "0-3", true}, {"2,70", "0-3", false}, {"0-4", "0-3", false}, {"100", "64-127", true}} {
		inner, err1 := parseCPUs(c.inner)
		outer, err2 := parseCPUs(c.outer)
		if err1 != nil || err2 != nil || inner.within(outer) != c.want {
			t.Errorf("%s within %s: want %v", c.inner, c.outer, c.want)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-1,3")
	f.Add("8191-8191")
	f.Fuzz(func(t *testing.T, list string) {
		set, err := parseCPUs(list)
		if err != nil {
			return
		}
		if *set == (cpuSet{}) || strings.Trim(strings.TrimSpace(list), "0123456789,-") != "" {
			t.Errorf("%q gives %v", list, set)
		}
	})
}
