package cgroup

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"
)

// Usage is what an execution used. Nil: this host cannot measure it.
type Usage struct {
	CPUUser, CPUSystem *time.Duration
	MemoryPeak         *int64 // bytes
	PIDsPeak           *int64
	OOMKills           *int64 // processes killed for want of memory
	PIDsLimitHits      *int64 // forks refused
}

// Usage reads the leaf's counters; they are final when its processes are gone.
func (l *Leaf) Usage() (Usage, error) {
	if l.group.tree.mode == Unified {
		return l.usage(&l.group.dirs[0])
	}
	var all Usage
	for i := range l.group.dirs {
		if err := l.usageV1(&l.group.dirs[i], &all); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (l *Leaf) usage(d *dir) (Usage, error) {
	var u Usage
	var buf [4096]byte
	text, err := l.read(d, "cpu.stat", buf[:])
	if err != nil {
		return u, err
	}
	u.CPUUser, u.CPUSystem = micros(field(text, "user_usec")), micros(field(text, "system_usec"))
	if text, err = l.read(d, "memory.events", buf[:]); err != nil {
		return u, err
	}
	u.OOMKills = field(text, "oom_kill")
	if text, err = l.read(d, "memory.peak", buf[:]); err != nil {
		return u, err
	}
	u.MemoryPeak = number(text)
	return u, l.usagePIDs(d, &u, buf[:])
}

func (l *Leaf) usagePIDs(d *dir, u *Usage, buf []byte) error {
	text, err := l.read(d, "pids.events", buf)
	if err != nil {
		return err
	}
	u.PIDsLimitHits = field(text, "max")
	if text, err = l.read(d, "pids.peak", buf); err != nil {
		return err
	}
	u.PIDsPeak = number(text)
	return nil
}

func (l *Leaf) usageV1(d *dir, u *Usage) error {
	var buf [4096]byte
	if d.has("cpuacct") {
		text, err := l.read(d, "cpuacct.usage_user", buf[:])
		if err != nil {
			return err
		}
		u.CPUUser = nanos(number(text))
		if text, err = l.read(d, "cpuacct.usage_sys", buf[:]); err != nil {
			return err
		}
		u.CPUSystem = nanos(number(text))
	}
	if d.has("memory") {
		text, err := l.read(d, "memory.oom_control", buf[:])
		if err != nil {
			return err
		}
		u.OOMKills = field(text, "oom_kill")
		if text, err = l.read(d, "memory.max_usage_in_bytes", buf[:]); err != nil {
			return err
		}
		u.MemoryPeak = number(text)
	}
	if d.has("pids") {
		return l.usagePIDs(d, u, buf[:])
	}
	return nil
}

// read gives a file's text, nil if this kernel has no such file.
func (l *Leaf) read(d *dir, file string, buf []byte) ([]byte, error) {
	text, err := readFile(d.number(), l.name+"/"+file, buf)
	if errors.Is(err, os.ErrNotExist) && exists(d.fd.Name()+"/"+l.name) {
		return nil, nil
	}
	return text, err
}

// field is the number after a name at the beginning of a line.
func field(text []byte, name string) *int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return number(rest)
		}
	}
	return nil
}

func number(text []byte) *int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func micros(n *int64) *time.Duration { return times(n, time.Microsecond) }

func nanos(n *int64) *time.Duration { return times(n, time.Nanosecond) }

func times(n *int64, unit time.Duration) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * unit
	return &d
}
