package rootfs

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"syscall"
)

// Mapping is one user and one group: as stored on disk, and as shown on an idmapped mount.
type Mapping struct {
	FromUID, ToUID, FromGID, ToGID int
	// RootGID is what group 0 of the disk shows as; 0: it is not mapped.
	RootGID int
}

// UserNS is a user namespace with that mapping, for mount_setattr(2). It is made by a process that is
// stopped at its exec, before any instruction of it runs, and killed. The caller must Close the file.
func UserNS(m Mapping) (*os.File, error) {
	goruntime.LockOSThread() // a tracer is a thread
	defer goruntime.UnlockOSThread()
	groups := []syscall.SysProcIDMap{{ContainerID: m.FromGID, HostID: m.ToGID, Size: 1}}
	if m.RootGID != 0 {
		groups = append(groups, syscall.SysProcIDMap{ContainerID: 0, HostID: m.RootGID, Size: 1})
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"husk-userns"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: m.FromUID, HostID: m.ToUID, Size: 1}},
			GidMappings: groups,
			Ptrace:      true,
			Pdeathsig:   syscall.SIGKILL,
		},
	})
	if errors.Is(err, syscall.ENOSPC) { // what the kernel calls it
		return nil, fmt.Errorf("make user namespace: the host has as many as it allows: raise /proc/sys/user/max_user_namespaces: %w", cause(err))
	}
	if err != nil {
		return nil, fmt.Errorf("make user namespace: %w", cause(err))
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	_ = p.Kill()
	_, _ = p.Wait()
	if err != nil {
		return nil, fmt.Errorf("open user namespace: %w", err)
	}
	return ns, nil
}

// spaces are the user namespaces of one root. They take milliseconds, so they are made while other work is
// done, and once where binds have the same owner.
type spaces map[Mapping]*space

type space struct {
	done chan struct{}
	ns   *os.File
	err  error
}

// start begins to make one.
func (s *spaces) start(m Mapping) {
	if (*s)[m] != nil || m == (Mapping{}) {
		return
	}
	if *s == nil {
		*s = spaces{}
	}
	made := &space{done: make(chan struct{})}
	(*s)[m] = made
	go func() {
		defer close(made.done)
		made.ns, made.err = UserNS(m)
	}()
}

// get waits for one that was started; close closes it.
func (s spaces) get(m Mapping) (*os.File, error) {
	<-s[m].done
	return s[m].ns, s[m].err
}

func (s spaces) close() {
	for m := range s {
		if ns, err := s.get(m); err == nil {
			ns.Close()
		}
	}
}
