package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// setting is one value for one file of a controller.
type setting struct {
	controller string
	file       string
	value      string
	optional   bool // a kernel without the file satisfies it
}

const (
	cpuPeriod   = 100_000 // microseconds
	minCPUQuota = 1_000
)

// settings is what has to be written for the limits, in order.
func (l Limits) settings(m Mode, s swap) ([]setting, error) {
	if l.Memory < 0 || l.CPUs < 0 || l.PIDs < 0 {
		return nil, fmt.Errorf("cgroup limits: negative value in %+v", l)
	}
	if l.Memory > 0 && l.Memory < MinMemory {
		return nil, fmt.Errorf("memory limit %d: at least %d bytes", l.Memory, MinMemory)
	}
	if m == Unified {
		return l.unified(), nil
	}
	return l.hybrid(s)
}

func (l Limits) unified() []setting {
	var list []setting
	if l.Memory > 0 {
		// no file: the kernel has no swap accounting because it has no swap
		list = append(list, setting{"memory", "memory.swap.max", "0", true}, setting{"memory", "memory.max", decimal(l.Memory), false})
	}
	if l.OOMGroup {
		list = append(list, setting{"memory", "memory.oom.group", "1", false})
	}
	if l.CPUs > 0 {
		list = append(list, setting{"cpu", "cpu.max", decimal(l.quota()) + " " + decimal(cpuPeriod), false})
	}
	if l.PIDs > 0 {
		list = append(list, setting{"pids", "pids.max", decimal(l.PIDs), false})
	}
	if l.CPUSet != "" {
		list = append(list, setting{"cpuset", "cpuset.cpus", l.CPUSet, false})
	}
	return list
}

func (l Limits) hybrid(s swap) ([]setting, error) {
	var list []setting
	if l.Memory > 0 {
		// memsw may not go below the plain limit, so that comes first
		list = append(list, setting{"memory", "memory.limit_in_bytes", decimal(l.Memory), false})
		if !s.accounted && s.present && !l.AllowSwap {
			return nil, fmt.Errorf("%w: memory limit without swap: this host has swap but no memory.memsw files: boot with swapaccount=1, or swapoff -a", ErrUnavailable)
		}
		if s.accounted {
			list = append(list, setting{"memory", "memory.memsw.limit_in_bytes", decimal(l.Memory), false})
		}
	}
	if l.CPUs > 0 {
		list = append(list, setting{"cpu", "cpu.cfs_quota_us", decimal(l.quota()), false})
	}
	if l.PIDs > 0 {
		list = append(list, setting{"pids", "pids.max", decimal(l.PIDs), false})
	}
	if l.CPUSet != "" {
		list = append(list, setting{"cpuset", "cpuset.cpus", l.CPUSet, false})
	}
	return list, nil
}

func (l Limits) quota() int64 { return max(int64(l.CPUs*cpuPeriod+0.5), minCPUQuota) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// swap is what the host has of it.
type swap struct {
	present   bool // some is in use as swap
	accounted bool // v1: memory.memsw files exist
}

// hasSwap: /proc/swaps has more than its heading (proc_swaps(5)).
func hasSwap() bool {
	text, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(text), "\n") > 1
}
