package runtime

import (
	"math"
	"time"
)

// The defaults of a Spec and a Command; docs/limits.md has the same table.
const (
	DefaultMemory  = 512 * MiB
	DefaultCPUs    = 1.0
	DefaultPIDs    = 128
	DefaultTimeout = 5 * time.Minute
	DefaultOutput  = 8 * MiB
	DefaultTmpfs   = 64 * MiB
	DefaultWorkDir = "/workspace"

	minMemory = 8 * MiB
	minCPUs   = 0.01
)

// withDefaults fills in what is zero. The copy shares nothing that is changed later.
func (s Spec) withDefaults(id string) Spec {
	if s.Snapshot == "" {
		s.Snapshot = "host"
	}
	if s.Scope == "execute" { // as Info and the command line call it
		s.Scope = ScopeExecute
	}
	if s.CPUView == "quota" {
		s.CPUView = CPUViewQuota
	}
	if s.Hostname == "" {
		s.Hostname = id
	}
	if s.WorkDir == "" {
		s.WorkDir = DefaultWorkDir
	}
	if s.Seccomp == "" {
		s.Seccomp = "default"
	}
	s.Limits = s.Limits.or(Limits{Memory: DefaultMemory, CPUs: DefaultCPUs, PIDs: DefaultPIDs})
	return s
}

// or takes from other what is zero in l.
func (l Limits) or(other Limits) Limits {
	if l.Memory == 0 {
		l.Memory = other.Memory
	}
	if l.CPUs == 0 {
		l.CPUs = other.CPUs
	}
	if l.CPUSet == "" {
		l.CPUSet = other.CPUSet
	}
	if l.PIDs == 0 {
		l.PIDs = other.PIDs
	}
	l.OOMGroup = l.OOMGroup || other.OOMGroup
	return l
}

// cpuCount is how many CPUs a program should see under a quota; 0: no quota.
func (l Limits) cpuCount() int {
	if l.CPUs <= 0 {
		return 0
	}
	return int(math.Ceil(l.CPUs))
}

// withDefaults fills in what is zero.
func (c Command) withDefaults(s Spec) Command {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Output == 0 {
		c.Output = DefaultOutput
	}
	if c.Dir == "" {
		c.Dir = s.WorkDir
	}
	if c.User == "" {
		c.User = s.User
	}
	if c.Seccomp == "" {
		c.Seccomp = s.Seccomp
	}
	c.Limits = c.Limits.or(s.Limits)
	return c
}
