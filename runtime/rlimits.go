package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

const rlimInfinity = ^uint64(0)

// rlimitNames are by number (asm-generic/resource.h).
func rlimitNames() []string {
	return []string{
		"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
		"sigpending", "msgqueue", "nice", "rtprio", "rttime",
	}
}

func defaultRlimits() [guest.NRlimits]guest.Rlimit {
	var all [guest.NRlimits]guest.Rlimit
	for i := range all {
		all[i] = guest.Rlimit{Soft: rlimInfinity, Hard: rlimInfinity}
	}
	// An exec may use a quarter of the stack, 6 MiB at most, for its arguments (execve(2)): 16 MiB
	// lets 3 MiB of them pass. A core limit of 0 would not stop a piped core handler, 1 does (core(5)).
	all[3] = guest.Rlimit{Soft: 16 << 20, Hard: rlimInfinity}
	all[4] = guest.Rlimit{Soft: 1, Hard: 1}
	all[7] = guest.Rlimit{Soft: 1024, Hard: 1024}
	all[8] = guest.Rlimit{Soft: 8 << 20, Hard: 8 << 20}
	all[11] = guest.Rlimit{Soft: 4096, Hard: 4096}
	all[12] = guest.Rlimit{Soft: 800 << 10, Hard: 800 << 10}
	all[13] = guest.Rlimit{}
	all[14] = guest.Rlimit{}
	return all
}

// rlimits are the defaults overridden by the caller's.
func rlimits(list []Rlimit) ([guest.NRlimits]guest.Rlimit, error) {
	all := defaultRlimits()
	for _, r := range list {
		i := slices.Index(rlimitNames(), r.Name)
		switch {
		case i < 0:
			return all, fmt.Errorf("rlimit %q: want one of %s", r.Name, strings.Join(rlimitNames(), " "))
		case r.Soft < Unlimited || r.Hard < Unlimited:
			return all, fmt.Errorf("rlimit %s: negative; -1 is unlimited", r.Name)
		case r.Hard != Unlimited && (r.Soft == Unlimited || r.Soft > r.Hard):
			return all, fmt.Errorf("rlimit %s: soft limit %d above the hard one %d", r.Name, r.Soft, r.Hard)
		}
		all[i] = guest.Rlimit{Soft: uint64(r.Soft), Hard: uint64(r.Hard)} // -1 is RLIM_INFINITY
	}
	return all, nil
}
