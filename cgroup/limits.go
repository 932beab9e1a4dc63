package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// The least that can be asked for.
const (
	MinMemory = 4 << 20 // bytes; less does not hold a process with its page tables
	MinCPUs   = 0.01    // the kernel's shortest quota is 1 ms of each period
)

// cpuPeriod is the kernel's default period of 100 ms, in µs.
const cpuPeriod = 100_000

// Limits of one group. The zero value of a field writes no limit of that kind at this level, and what
// the groups above allow holds.
type Limits struct {
	Memory int64   // bytes, page cache and tmpfs included; at least MinMemory. Swap is always 0
	CPUs   float64 // CPU seconds per second, at least MinCPUs
	CPUSet string  // CPUs to run on, "0-1,3", each of which the group above must have
	PIDs   int64   // processes and threads
	// AllowSwap accepts a memory limit that does not cover swap where the host cannot give that.
	AllowSwap bool
	OOMGroup  bool // when memory is out, all of the group dies together. See Leaf.OOMEvents for Hybrid
}

// validate reports everything that is wrong.
func (l Limits) validate() error {
	var errs []error
	if l.Memory != 0 && l.Memory < MinMemory {
		errs = append(errs, fmt.Errorf("memory limit of %d bytes: the minimum is %d (4 MiB)", l.Memory, int64(MinMemory)))
	}
	if l.CPUs != 0 && !(l.CPUs >= MinCPUs && l.CPUs <= maxCPUs) {
		errs = append(errs, fmt.Errorf("limit of %v CPUs: want %v to %d", l.CPUs, MinCPUs, maxCPUs))
	}
	if l.PIDs < 0 {
		errs = append(errs, fmt.Errorf("limit of %d pids: want 1 or more", l.PIDs))
	}
	if l.CPUSet != "" {
		if _, err := parseCPUs(l.CPUSet); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// controller is one of those that limits are written to.
type controller int

const (
	memory controller = iota
	pids
	cpu
	cpuset
	numControllers
)

func (c controller) String() string {
	return [...]string{"memory", "pids", "cpu", "cpuset"}[c]
}

// setting is a value for a control file of a group.
type setting struct {
	in    controller
	file  string
	value string
}

// settings says what to write, in this order. swapFile: the kernel can limit swap. CPU sets are not
// among them: they depend on the group above.
func (l Limits) settings(mode Mode, swapFile bool) []setting {
	list := make([]setting, 0, 5)
	if l.Memory > 0 {
		list = l.memorySettings(list, mode, swapFile)
	}
	if l.OOMGroup && mode == Unified {
		list = append(list, setting{memory, "memory.oom.group", "1"})
	}
	if l.PIDs > 0 {
		list = append(list, setting{pids, "pids.max", strconv.FormatInt(l.PIDs, 10)})
	}
	if l.CPUs > 0 {
		quota := strconv.FormatInt(int64(math.Ceil(l.CPUs*cpuPeriod)), 10)
		if mode == Unified {
			list = append(list, setting{cpu, "cpu.max", quota + " 100000"})
		} else {
			list = append(list, setting{cpu, "cpu.cfs_quota_us", quota}) // of the default period
		}
	}
	return list
}

func (l Limits) memorySettings(list []setting, mode Mode, swapFile bool) []setting {
	bytes := strconv.FormatInt(l.Memory, 10)
	if mode == Unified {
		list = append(list, setting{memory, "memory.max", bytes})
		if swapFile {
			list = append(list, setting{memory, swapMax, "0"})
		}
		return list
	}
	list = append(list, setting{memory, "memory.limit_in_bytes", bytes})
	if swapFile {
		list = append(list, setting{memory, memsw, bytes}) // memory and swap together: never below memory alone
	}
	return list
}

// The files that limit swap, which a kernel may lack.
const (
	swapMax = "memory.swap.max"
	memsw   = "memory.memsw.limit_in_bytes"
)
