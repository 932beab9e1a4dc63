package runtime

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

const (
	rlimInfinity     = ^uint64(0)
	rlimitSigpending = 11
	rlimitMsgqueue   = 12
	rlimitNice       = 13
	rlimitRtprio     = 14
)

// rlimitNames are by number (asm-generic/resource.h).
func rlimitNames() []string {
	return []string{
		"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
		"sigpending", "msgqueue", "nice", "rtprio", "rttime",
	}
}

// rlimitSet says which of the 16 are set; the others stay at this host's maxima.
type rlimitSet struct {
	all  [guest.NRlimits]guest.Rlimit
	mask uint32
}

func (r *rlimitSet) set(i int, soft, hard uint64) {
	r.all[i] = guest.Rlimit{Soft: soft, Hard: hard}
	r.mask |= 1 << i
}

func defaultRlimits() rlimitSet {
	var r rlimitSet
	// An exec may use a quarter of the stack, 6 MiB at most, for its arguments (execve(2)): 16 MiB
	// lets 3 MiB of them pass. A core limit of 0 would not stop a piped core handler, 1 does (core(5)).
	r.set(unix.RLIMIT_STACK, 16<<20, rlimInfinity)
	r.set(unix.RLIMIT_CORE, 1, 1)
	r.set(unix.RLIMIT_NOFILE, 1024, 1024)
	r.set(unix.RLIMIT_MEMLOCK, 8<<20, 8<<20)
	r.set(rlimitSigpending, 4096, 4096)
	r.set(rlimitMsgqueue, 800<<10, 800<<10)
	r.set(rlimitNice, 0, 0)
	r.set(rlimitRtprio, 0, 0)
	return r
}

// rlimits are the defaults overridden by the caller's.
func rlimits(list []Rlimit) (rlimitSet, error) {
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
		all.set(i, uint64(r.Soft), uint64(r.Hard)) // -1 is RLIM_INFINITY
	}
	return all, nil
}
