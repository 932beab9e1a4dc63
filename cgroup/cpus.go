package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// maxCPUs is the most that Linux can be built for.
const maxCPUs = 8192

// cpuSet has a bit for each CPU.
type cpuSet [maxCPUs / 64]uint64

// parseCPUs reads a list such as "0-1,3".
func parseCPUs(list string) (*cpuSet, error) {
	set := new(cpuSet)
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil || first > last || last >= maxCPUs {
			return nil, fmt.Errorf("CPU set %q: want a list such as 0-1,3", list)
		}
		for n := first; n <= last; n++ {
			set[n/64] |= 1 << (n % 64)
		}
	}
	return set, nil
}

// within says whether other has all CPUs of s.
func (s *cpuSet) within(other *cpuSet) bool {
	for i := range s {
		if s[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}
