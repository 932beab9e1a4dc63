package guest

import (
	"encoding/binary"
	"os"
	"time"
)

// Exec is one execution as the guest needs it. All of it is decided on the host.
type Exec struct {
	Args, Env []string
	Paths     []string // where the program may be, tried in order
	Dir       string
	UID, GID  uint32
	Groups    []uint32 // at most MaxGroups
	Caps      uint64   // kept capabilities, by number
	Umask     uint32
	Filter    []byte   // struct sock_filter…
	Errnos    []uint16 // with Trace: what refused calls are answered, by number
	Trace     bool
	Wall      time.Duration // 0 = none
	CPUTime   time.Duration // 0 = none
	CPUs      uint32        // how fast CPUTime can be used up
	CPUv1     bool          // CPUFile is cpuacct.usage
	Rlimits   [NRlimits]Rlimit
	RlimitSet uint32 // bit i: set Rlimits[i]; the others stay at the host's maxima
	Affinity  []int  // CPUs; empty: all
	TTY       bool
	Rows,
	Cols uint16

	// Descriptors, borrowed until Start returns. Nil: absent.
	Stdin, Stdout, Stderr *os.File // not with TTY
	Into                  *os.File // the leaf's directory in the v2 hierarchy
	CPUFile               *os.File // needed with CPUTime
	OOMEvents             *os.File
	Tasks                 []*os.File // at most MaxTasks
}

// payload lays out what is too long for the message, and notes in r where everything is.
func (e *Exec) payload(r *request) []byte {
	lists := [][]string{e.Args, e.Env, e.Paths}
	size := 0
	for _, list := range lists {
		size += 8 * (len(list) + 1)
	}
	r.filterOff, r.filterLen = uint32(size), uint32(len(e.Filter))
	r.errnosOff = r.filterOff + r.filterLen
	if e.Trace {
		r.errnosLen = uint32(2 * len(e.Errnos))
	}
	at := int(r.errnosOff + r.errnosLen)
	buf := make([]byte, at, at+stringsSize(lists)+len(e.Dir)+1)
	copy(buf[r.filterOff:], e.Filter)
	for i := 0; i < int(r.errnosLen)/2; i++ {
		binary.NativeEndian.PutUint16(buf[int(r.errnosOff)+2*i:], e.Errnos[i])
	}
	slot := 0
	for _, list := range lists {
		for _, s := range list {
			binary.NativeEndian.PutUint64(buf[slot:], uint64(len(buf)))
			buf = append(append(buf, s...), 0)
			slot += 8
		}
		slot += 8 // the list's final 0
	}
	r.cwdOff = uint32(len(buf))
	buf = append(append(buf, e.Dir...), 0)
	r.argc, r.envc, r.npaths = uint32(len(e.Args)), uint32(len(e.Env)), uint32(len(e.Paths))
	r.payloadLen = uint32(len(buf))
	return buf
}

func stringsSize(lists [][]string) int {
	n := 0
	for _, list := range lists {
		for _, s := range list {
			n += len(s) + 1
		}
	}
	return n
}

func (e *Exec) request() *request {
	r := &request{
		version: Version, kind: kindExec, wallNS: uint64(e.Wall), cpuNS: uint64(e.CPUTime), caps: e.Caps,
		uid: e.UID, gid: e.GID, umask: e.Umask, ncpus: e.CPUs, rows: uint32(e.Rows), cols: uint32(e.Cols),
		rlimits: e.Rlimits, rlimitMask: e.RlimitSet, ngroups: uint32(copy64(e.Groups)), ntasks: uint32(len(e.Tasks)),
	}
	copy(r.groups[:], e.Groups)
	r.flags = bit(e.TTY, flagTTY) | bit(e.Into != nil, flagInto) | bit(e.OOMEvents != nil, flagOOM) |
		bit(e.Trace, flagTrace) | bit(e.CPUv1, flagCPUv1) | bit(len(e.Affinity) > 0, flagAffinity)
	for _, cpu := range e.Affinity {
		if cpu >= 0 && cpu < 64*len(r.affinity) {
			r.affinity[cpu/64] |= 1 << (cpu % 64)
		}
	}
	return r
}

func copy64(groups []uint32) int { return min(len(groups), MaxGroups) }

func bit(on bool, flag uint32) uint32 {
	if on {
		return flag
	}
	return 0
}

// fds is the descriptors in the order of src/proto.h.
func (e *Exec) fds(payload *os.File) []int {
	files := append(make([]*os.File, 0, maxFDs), payload)
	if !e.TTY {
		files = append(files, e.Stdin, e.Stdout, e.Stderr)
	}
	for _, f := range []*os.File{e.Into, e.cpuFile(), e.OOMEvents} {
		if f != nil {
			files = append(files, f)
		}
	}
	files = append(files, e.Tasks...)
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
}

func (e *Exec) cpuFile() *os.File {
	if e.CPUTime == 0 {
		return nil
	}
	return e.CPUFile
}
