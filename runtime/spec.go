package runtime

import (
	"time"

	"github.com/husk-sandbox/husk/netpolicy"
)

// Spec is everything a caller may ask of a sandbox, as data. The zero value is the safest: base
// `host`, no network, read-only root, default limits and seccomp profile, nothing shared with the
// host.
type Spec struct {
	// Name is a second name for the sandbox besides its id; unique among the existing ones.
	// [a-z0-9][a-z0-9_.-]{0,63}. Empty: none.
	Name string `json:"name,omitempty"`
	// Labels are the caller's own notes.
	Labels map[string]string `json:"labels,omitempty"`
	// Snapshot is the root; empty is the built-in base "host", the only one in this version.
	Snapshot string `json:"snapshot,omitempty"`
	// Scope says what executions share besides workspace and binds. Zero: nothing.
	Scope Scope `json:"scope,omitempty"`
	// Network is what the network may do. Zero: none, an own namespace with loopback only.
	Network netpolicy.Policy `json:"network"`
	// User runs the commands: "name", "uid", "name:gid" or "uid:gid", ids 0 to 65535 inside. Empty: the
	// snapshot's own (base host: sandbox, 1000). Base host has the names root, sandbox and nobody.
	User string `json:"user,omitempty"`
	// Hostname inside. Empty: the sandbox's id.
	Hostname string `json:"hostname,omitempty"`
	// WorkDir is where commands start, an absolute path that exists inside. Empty: /workspace.
	WorkDir string `json:"work_dir,omitempty"`
	// Env holds NAME=value entries for every execution, over PATH, HOME, USER, LANG=C.UTF-8 and the
	// thread counts of CPUView. Of this process's own environment nothing is passed on.
	Env []string `json:"env,omitempty"`
	// Binds show files and directories of the host inside. With scope execute none may lie below /tmp,
	// /var/tmp, /run, /dev/shm or HOME, which are mounted anew for each execution.
	Binds []Bind `json:"binds,omitempty"`
	// Tmpfs are further sized tmpfs, besides /tmp /var/tmp /run /dev/shm, HOME and /workspace. One
	// with the destination of a built-in one replaces it.
	Tmpfs []Tmpfs `json:"tmpfs,omitempty"`
	// Limits hold for the sandbox as a whole and, as defaults, for each execution.
	Limits Limits `json:"limits"`
	// CPUView says how many CPUs programs see. Zero: as many as Limits.CPUs rounded up.
	CPUView CPUView `json:"cpu_view,omitempty"`
	// Seccomp is the name of a built-in profile (default, strict, unconfined) or the text of an OCI
	// seccomp profile in JSON (begins with "{"). Empty: default.
	Seccomp string `json:"seccomp,omitempty"`
	// AllowDowngrade names what may be missing on this host without an error; the Result lists what
	// was missing. Known: DowngradeSwap.
	AllowDowngrade []string `json:"allow_downgrade,omitempty"`
}

// DowngradeSwap: on a host with swap but without swap accounting, memory may be swapped out beyond
// the memory limit.
const DowngradeSwap = "swap"

// Scope says what the executions of one sandbox share.
type Scope string

// The scopes.
const (
	// ScopeExecute (the zero value): fresh net, ipc, /tmp, /run, /dev/shm for each execution.
	ScopeExecute Scope = ""
	// ScopeSandbox: those belong to the sandbox, so that a server started by one execution can be
	// reached by another running beside it.
	ScopeSandbox Scope = "sandbox"
)

// CPUView says how many CPUs a program sees.
type CPUView string

// The views.
const (
	// CPUViewQuota (the zero value): ceil(CPUs) of the host's, the least used by other sandboxes,
	// by CPU affinity; OMP_NUM_THREADS and its kind are set alike unless the caller sets them.
	CPUViewQuota CPUView = ""
	// CPUViewHost: all of the host's; only time is limited.
	CPUViewHost CPUView = "host"
)

// Bind shows a file or directory of the host inside, writable unless ReadOnly is set. On a writable
// bind, files belong on the host to the owner of Source, never to root unless AsHostRoot, and its file
// system must support idmapped mounts (ext4, xfs, btrfs; tmpfs from Linux 6.3).
type Bind struct {
	Source      string `json:"source"`      // on the host, absolute, must exist
	Destination string `json:"destination"` // inside, absolute, not below /proc /sys /dev; made when missing
	ReadOnly    bool   `json:"read_only"`
	AsHostRoot  bool   `json:"as_host_root,omitempty"` // needed for a writable bind of what host root owns
}

// Tmpfs is a sized memory file system; what it holds counts against the memory limit.
type Tmpfs struct {
	Destination string `json:"destination"`
	Size        Bytes  `json:"size"`             // zero: 64 MiB
	Inodes      int64  `json:"inodes,omitempty"` // zero: one per 4 KiB of Size
	Mode        uint32 `json:"mode,omitempty"`   // zero: 01777
	Exec        bool   `json:"exec,omitempty"`   // programs may be run from it; the built-in ones allow it
}

// Limits bound CPU, memory and processes. Zero is the default named, Unlimited (-1) is no limit. What is
// more than the host has (CPUs) is ErrInvalid.
type Limits struct {
	Memory   Bytes   `json:"memory_bytes,omitempty"` // default 512 MiB; swap is always 0; at least 8 MiB
	CPUs     float64 `json:"cpus,omitempty"`         // default 1; fractions allowed, at least 0.01
	CPUSet   string  `json:"cpuset,omitempty"`       // "0-1,3": these CPUs only; default all
	PIDs     int     `json:"pids,omitempty"`         // default 128 processes and threads
	OOMGroup bool    `json:"oom_group,omitempty"`    // out of memory kills the whole execution, not one process
}

// TTY asks for a terminal of the sandbox's own; Stdin, Stdout carry it and Stderr is unused.
type TTY struct {
	Rows, Cols uint16
	// Resize delivers new sizes while the command runs; nil if it never changes.
	Resize <-chan TTYSize
}

// TTYSize is a window size.
type TTYSize struct{ Rows, Cols uint16 }

// Rlimit bounds one kernel resource of each process (setrlimit(2)): core cpu data fsize locks
// memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack as. Unlimited (-1) is
// RLIM_INFINITY. More than the host's maximum is an error of the execution.
type Rlimit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"`
	Hard int64  `json:"hard"`
}

// NoTimeout spells out that there is no time limit.
const NoTimeout time.Duration = -1
