package engine

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// The guest's own group: it holds one small process and, for a moment, the children that it forks. Idle it
// uses a quarter of a MiB; but the kernel charges it with the namespaces of every execution, some 200 KiB
// each, and it can have 128 of them.
const (
	guestMemory = 64 << 20
	guestPIDs   = 64
)

// guestCaps is what the guest needs: to make namespaces and mounts (SYS_ADMIN), to bring up lo
// (NET_ADMIN), to take capabilities away and change ids (SETPCAP, SETUID, SETGID), to kill (KILL), to
// forbid nested user namespaces (SYS_RESOURCE), to give away a terminal (CHOWN); the others it only
// passes on to commands that run as root of an image.
func guestCaps() *configs.Capabilities {
	caps := []string{
		"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP", "CAP_SETUID", "CAP_SETGID", "CAP_KILL",
		"CAP_SYS_RESOURCE", "CAP_CHOWN",
		"CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
	}
	return &configs.Capabilities{Bounding: caps, Permitted: caps, Effective: caps}
}

func libcontainerConfig(c Config) *configs.Config {
	score := 0
	ids := c.Root.IDs
	return &configs.Config{
		Rootfs:          c.Root.Target,
		RootPropagation: unix.MS_PRIVATE | unix.MS_REC,
		Namespaces:      namespaces(c.HostNetwork),
		UIDMappings:     []configs.IDMap{{ContainerID: 0, HostID: int64(ids.UIDBase), Size: int64(ids.Size)}},
		GIDMappings:     []configs.IDMap{{ContainerID: 0, HostID: int64(ids.GIDBase), Size: int64(ids.Size)}},
		Mounts: []*configs.Mount{
			{Source: "proc", Destination: "/proc", Device: "proc", Flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
			{Source: c.Root.Dev, Destination: "/dev", Device: "bind", Flags: unix.MS_BIND | unix.MS_REC | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NOEXEC},
		},
		Hostname:        c.Root.Hostname,
		Capabilities:    guestCaps(),
		NoNewPrivileges: true,
		NoNewKeyring:    true,
		OomScoreAdj:     &score,
		Rlimits:         maxima(),
		Cgroups: &cgroups.Cgroup{
			Path: c.CgroupPath,
			Resources: &cgroups.Resources{
				Memory:    guestMemory,
				PidsLimit: pidsLimit(guestPIDs),
			},
		},
	}
}

func pidsLimit(n int64) *int64 { return &n }

// namespaces has no cgroup namespace: rooted below the common ancestor of guest and leaves it would
// make CLONE_INTO_CGROUP fail (ENOENT).
func namespaces(hostNetwork bool) configs.Namespaces {
	ns := configs.Namespaces{
		{Type: configs.NEWUSER}, {Type: configs.NEWNS}, {Type: configs.NEWPID}, {Type: configs.NEWIPC}, {Type: configs.NEWUTS},
	}
	if !hostNetwork {
		ns = append(ns, configs.Namespace{Type: configs.NEWNET})
	}
	return ns
}

// maxima are the host's, so that an execution may be given whatever a caller asks for; a guest in a
// user namespace could only go down.
func maxima() []configs.Rlimit {
	raise := mayRaise()
	limits := make([]configs.Rlimit, 0, 16)
	for kind := range 16 {
		max := uint64(math.MaxUint64)
		switch {
		case !raise:
			var own unix.Rlimit
			_ = unix.Getrlimit(kind, &own) // fails only for an unknown kind
			max = own.Max
		case kind == unix.RLIMIT_NOFILE:
			max = nrOpen()
		}
		limits = append(limits, configs.Rlimit{Type: kind, Soft: max, Hard: max})
	}
	return limits
}

// guestOpenFiles is what the guest must be allowed to open: it polls three descriptors for each of
// 128 executions, and poll(2) refuses a list that is longer than RLIMIT_NOFILE.
const guestOpenFiles = 512

// checkOpenFiles: a guest that could not poll would never answer.
func checkOpenFiles(limits []configs.Rlimit) error {
	if n := limits[unix.RLIMIT_NOFILE].Hard; n < guestOpenFiles {
		return fmt.Errorf("the limit of open files is %d, and husk may not raise it: at least %d are needed (ulimit -n)", n, guestOpenFiles)
	}
	return nil
}

// mayRaise: whether we hold CAP_SYS_RESOURCE; root in a container or a trimmed VM may not, and then
// our own hard limits are this host's maxima.
func mayRaise() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return false
	}
	return data[0].Effective>>unix.CAP_SYS_RESOURCE&1 == 1
}

// nrOpen is fs.nr_open, above which RLIMIT_NOFILE cannot go (proc_sys_fs(5)).
func nrOpen() uint64 {
	text, err := os.ReadFile("/proc/sys/fs/nr_open")
	if err != nil {
		return 1 << 20
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 1 << 20
	}
	return n
}

func guestProcess(inherit []*os.File, null *os.File) *libcontainer.Process {
	yes := true
	return &libcontainer.Process{
		Args:            []string{"/proc/self/fd/7"}, // FD_SELF of proto.h
		Cwd:             "/",
		Stdin:           null,
		Stdout:          null,
		Stderr:          null,
		ExtraFiles:      inherit,
		Init:            true,
		NoNewPrivileges: &yes,
	}
}
