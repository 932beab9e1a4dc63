package guest

import (
	"syscall"
	"time"
	"unsafe"
)

// Version is the protocol's. A guest refuses requests of another one.
const Version = 1

const (
	kindHello = 1 + iota
	kindExec
	kindSignal
	kindKill
	kindStop
)

// Kind is what a guest's message says.
type Kind uint32

// The kinds.
const (
	KindVersion Kind = 1 + iota
	KindRefused      // Errno: ESHUTDOWN while stopping, EPROTONOSUPPORT for another version, EINVAL
	KindStarted
	KindTTY   // the terminal's master comes along
	KindEnded // exactly one for each execution: everything of it is gone, and the connection free
	KindDone  // before KindEnded, unless the reaper was killed: its processes are dead
)

const (
	flagTTY = 1 << iota
	flagInto
	flagOOM
	flagTrace
	flagCPUv1
	flagAffinity
)

// Limits of one message; src/proto.h has the same.
const (
	MaxGroups = 32
	MaxTasks  = 8
	NRlimits  = 16
	maxFDs    = 16
	maxDenied = 64
)

type request struct {
	version, kind, flags, signal     uint32
	graceNS, wallNS, cpuNS, caps     uint64
	uid, gid, umask, ngroups         uint32
	groups                           [MaxGroups]uint32
	ntasks, ncpus, rows, cols        uint32
	payloadLen, argc, envc, npaths   uint32
	cwdOff, filterOff, filterLen     uint32
	errnosOff, errnosLen, rlimitMask uint32
	rlimits                          [NRlimits]Rlimit
	affinity                         [16]uint64
}

// Rlimit is one struct rlimit64; ^uint64(0) is RLIM_INFINITY.
type Rlimit struct{ Soft, Hard uint64 }

type reply struct {
	version, kind, reason, step uint32
	err, index, status          int32
	mainEnded, full, ndenied    uint32
	wallNS, inBlocks, outBlocks uint64
	denied                      [maxDenied]struct{ nr, count uint32 }
}

func (r *request) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
}

func (r *reply) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
}

// Step is where an execution failed to start.
type Step uint32

// The steps that callers tell apart.
const (
	StepNone   Step = 0
	StepMount  Step = 7
	StepRlimit Step = 16
	StepChdir  Step = 22
	StepExec   Step = 24
)

// String names the step for an error message.
func (s Step) String() string {
	names := [...]string{
		"start", "read message", "clone into new namespaces", "read payload", "move into cgroup",
		"unshare cgroup namespace", "open mount target", "mount", "mask", "bring up lo", "open terminal",
		"set up stdio", "drop bounding set", "set no_new_privs", "fork", "new session", "set rlimit",
		"set CPU affinity", "set supplementary groups", "set gid", "set uid", "set capabilities", "chdir",
		"install seccomp filter", "exec",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown step"
}

// Reason is why the guest killed an execution.
type Reason uint32

// The reasons.
const (
	ReasonNone Reason = iota
	ReasonWall
	ReasonCPU
	ReasonOOM
	ReasonKill
	ReasonStop
)

// Denied is one refused system call of a traced execution.
type Denied struct{ Number, Count uint32 }

// Message is what a guest said. The fields from Reason on belong to KindEnded and
// KindDone.
type Message struct {
	Kind   Kind
	Errno  syscall.Errno // of KindRefused, or of Step
	Reason Reason
	Step   Step // not StepNone: it did not start
	Index  int  // which mount, mask or rlimit Step was about; -1: none
	// Status is the main process's if MainEnded, else the reaper's (which was killed before it).
	Status    syscall.WaitStatus
	MainEnded bool
	Full      uint32 // bit i: mount i of the Config had no space left
	Denied    []Denied
	Wall      time.Duration
	IORead    int64 // bytes
	IOWrite   int64
}

// message checks a reply and takes it apart.
func (r *reply) message() Message {
	m := Message{
		Kind: Kind(r.kind), Errno: syscall.Errno(r.err), Reason: Reason(r.reason), Step: Step(r.step),
		Index: int(r.index), Status: syscall.WaitStatus(uint32(r.status)), MainEnded: r.mainEnded != 0,
		Full: r.full, Wall: time.Duration(r.wallNS),
		IORead: int64(r.inBlocks) * 512, IOWrite: int64(r.outBlocks) * 512,
	}
	for i := uint32(0); i < min(r.ndenied, maxDenied); i++ {
		m.Denied = append(m.Denied, Denied{r.denied[i].nr, r.denied[i].count})
	}
	return m
}
