package rootfs

import (
	"fmt"
	"os"
	goruntime "runtime"
	"syscall"
)

// Mapping is one user and one group: as stored on disk, and as shown on an idmapped mount.
type Mapping struct{ FromUID, ToUID, FromGID, ToGID int }

// UserNS is a user namespace with that mapping, for mount_setattr(2). It is made by a process that is
// stopped at its exec, before any instruction of it runs, and killed. The caller must Close the file.
func UserNS(m Mapping) (*os.File, error) {
	goruntime.LockOSThread() // a tracer is a thread
	defer goruntime.UnlockOSThread()
	p, err := os.StartProcess("/proc/self/exe", []string{"husk-userns"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: m.FromUID, HostID: m.ToUID, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: m.FromGID, HostID: m.ToGID, Size: 1}},
			Ptrace:      true,
			Pdeathsig:   syscall.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make user namespace: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	_ = p.Kill()
	_, _ = p.Wait()
	if err != nil {
		return nil, fmt.Errorf("open user namespace: %w", err)
	}
	return ns, nil
}
