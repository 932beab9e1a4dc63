package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// takeCPUs chooses n CPUs for sandbox id, of those allowed: the ones that the fewest sandboxes were
// given. The shared count is a directory with one file for each sandbox, its choice in its name, so
// that a sandbox's share goes with its file. Nil: all that are allowed.
func takeCPUs(dir, id string, n int, allowed []int) ([]int, error) {
	if n <= 0 || n >= len(allowed) {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("assign CPUs: %w", err)
	}
	lock, err := lockFile(filepath.Join(filepath.Dir(dir), "cpus.lock"), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("assign CPUs: %w", err)
	}
	defer lock.Close()
	count, err := countCPUs(dir)
	if err != nil {
		return nil, err
	}
	cpus := append([]int(nil), allowed...)
	sort.SliceStable(cpus, func(i, j int) bool { return count[cpus[i]] < count[cpus[j]] })
	cpus = cpus[:n]
	sort.Ints(cpus)
	f, err := os.OpenFile(filepath.Join(dir, id+":"+joinInts(cpus)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("assign CPUs: %w", err)
	}
	return cpus, f.Close()
}

func countCPUs(dir string) (map[int]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("assign CPUs: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("assign CPUs: %w", err)
	}
	count := map[int]int{}
	for _, name := range names {
		_, list, _ := strings.Cut(name, ":")
		for text := range strings.SplitSeq(list, ",") {
			if cpu, err := strconv.Atoi(text); err == nil {
				count[cpu]++
			}
		}
	}
	return count, nil
}

func freeCPUs(dir, id string, cpus []int) {
	if len(cpus) > 0 {
		_ = os.Remove(filepath.Join(dir, id+":"+joinInts(cpus)))
	}
}

func joinInts(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

// allowedCPUs are those that this process may use, cut down to a cpuset ("0-1,3") if there is one.
func allowedCPUs(cpuset string) ([]int, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return nil, fmt.Errorf("read CPU affinity: %w", err)
	}
	want, err := parseCPUSet(cpuset)
	if err != nil {
		return nil, err
	}
	var cpus []int
	for cpu := range len(mask) * 64 {
		if mask.IsSet(cpu) && (cpuset == "" || want[cpu]) {
			cpus = append(cpus, cpu)
		}
	}
	for cpu := range want {
		if !mask.IsSet(cpu) {
			return nil, fmt.Errorf("%w cpuset %q: this host has no CPU %d", ErrInvalid, cpuset, cpu)
		}
	}
	return cpus, nil
}

// checkCPUs: this host has the CPUs that are asked for.
func checkCPUs(l Limits) error {
	all, err := allowedCPUs("")
	if err != nil {
		return err
	}
	if l.CPUs > float64(len(all)) {
		return fmt.Errorf("%w cpu limit %v: this host has %d to give; unlimited is all of them", ErrInvalid, l.CPUs, len(all))
	}
	_, err = allowedCPUs(l.CPUSet)
	return err
}

// visibleCPUs is how many CPUs a program should count under a quota and a cpuset; 0: no quota.
func visibleCPUs(l Limits) int {
	n := l.cpuCount()
	if set, err := parseCPUSet(l.CPUSet); err == nil && len(set) > 0 {
		n = min(n, len(set))
	}
	return n
}

func parseCPUSet(text string) (map[int]bool, error) {
	set := map[int]bool{}
	if text == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 16)
		b := a
		if ranged && err == nil {
			b, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || b < a || b >= 1024 {
			return nil, fmt.Errorf("%w cpuset %q: want CPU numbers such as 0-1,3", ErrInvalid, text)
		}
		for cpu := a; cpu <= b; cpu++ {
			set[int(cpu)] = true
		}
	}
	return set, nil
}
