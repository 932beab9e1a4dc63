package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/rootfs"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

// place is a directory of a sandbox that a sized tmpfs is mounted on.
type place struct {
	Tmpfs
	home  bool // belongs to the user, not to all
	fresh bool // anew in each execution; else it lives as long as the sandbox
}

// places are the built-in tmpfs and the caller's, without those that a bind replaces. Default sizes
// are shares of the memory limit, since what they hold counts against it.
func (s Spec) places(u user) []place {
	share := func(n Bytes) Bytes {
		memory := s.Limits.Memory
		if memory == Unlimited {
			memory = 4 * GiB
		}
		return max(memory/n, MiB)
	}
	fresh := s.Scope == ScopeExecute
	all := []place{
		{Tmpfs: Tmpfs{Destination: "/tmp", Size: share(8), Exec: true}, fresh: fresh},
		{Tmpfs: Tmpfs{Destination: "/var/tmp", Size: share(16), Exec: true}, fresh: fresh},
		{Tmpfs: Tmpfs{Destination: "/run", Size: share(32), Exec: true}, fresh: fresh},
		{Tmpfs: Tmpfs{Destination: "/dev/shm", Size: share(4)}, fresh: fresh},
		{Tmpfs: Tmpfs{Destination: u.home, Size: share(16), Mode: 0o755, Exec: true}, home: true, fresh: fresh},
		{Tmpfs: Tmpfs{Destination: DefaultWorkDir, Size: share(8), Mode: 0o755, Exec: true}, home: true},
	}
	for _, t := range s.Tmpfs {
		t.Destination = inside(t.Destination)
		i := slices.IndexFunc(all, func(p place) bool { return p.Destination == t.Destination })
		if i < 0 {
			all = append(all, place{Tmpfs: t, fresh: fresh})
			i = len(all) - 1
		}
		all[i].Tmpfs = t.or(all[i].Tmpfs)
	}
	// parents before what is mounted below them
	slices.SortStableFunc(all, func(a, b place) int { return depth(a.Destination) - depth(b.Destination) })
	return slices.DeleteFunc(all, func(p place) bool {
		return slices.ContainsFunc(s.Binds, func(b Bind) bool { return inside(b.Destination) == p.Destination })
	})
}

// inside is a destination without the links that the base has beside those to /usr.
func inside(dst string) string {
	dst = path.Clean(dst)
	for _, link := range [...][2]string{{"/var/run", "/run"}, {"/var/lock", "/run/lock"}} {
		if rest, ok := strings.CutPrefix(dst, link[0]); ok && (rest == "" || rest[0] == '/') {
			return link[1] + rest
		}
	}
	return dst
}

func depth(dst string) int { return strings.Count(path.Clean(dst), "/") }

// or takes from other, or the defaults, what is zero in t.
func (t Tmpfs) or(other Tmpfs) Tmpfs {
	if t.Size == 0 {
		t.Size = other.Size
	}
	if t.Size == 0 {
		t.Size = DefaultTmpfs
	}
	if t.Mode == 0 {
		t.Mode = other.Mode
	}
	t.Exec = t.Exec || other.Exec
	return t
}

func (p place) mode() uint32 {
	if p.Mode == 0 {
		return 0o1777
	}
	return p.Mode
}

func (p place) inodes() int64 {
	if p.Inodes == 0 {
		return max(int64(p.Size/(4*KiB)), 64)
	}
	return p.Inodes
}

// freshTmpfs are the places that each execution mounts anew.
func (s Spec) freshTmpfs() []place {
	u, err := parseUser(s.User)
	if err != nil {
		return nil // reported elsewhere
	}
	return slices.DeleteFunc(s.places(u), func(p place) bool { return !p.fresh })
}

// checkSizes: what lives in memory as long as the sandbox must leave room for a program to run.
func checkSizes(s Spec, places []place) error {
	if s.Limits.Memory == Unlimited {
		return nil
	}
	var sum Bytes
	var names []string
	for _, p := range places {
		if !p.fresh {
			sum += p.Size
			names = append(names, p.Destination+" "+p.Size.String())
		}
	}
	room := min(64*MiB, s.Limits.Memory/2)
	if sum > s.Limits.Memory-room {
		return fmt.Errorf("%w tmpfs sizes: %s together leave less than %s of the memory limit %s: make them smaller or the limit larger",
			ErrInvalid, strings.Join(names, ", "), room, s.Limits.Memory)
	}
	return nil
}

// host is what the plan needs to know of this host and this sandbox.
type host struct {
	target      string // where the root is mounted
	dev         string // and the /dev tree
	uidBase     int
	cgroupDirs  []string // below /sys/fs/cgroup: "" on pure v2, v1 controllers to show on hybrid
	hostNetwork bool
}

// rootPlan is the part that is made once per sandbox.
func rootPlan(s Spec, u user, h host, g guest.Config) rootfs.Plan {
	plan := rootfs.Plan{
		Target: h.target, Dev: h.dev, Base: rootfs.BaseHost, Hostname: s.Hostname, HostNetwork: h.hostNetwork,
		IDs:  rootfs.IDs{UIDBase: h.uidBase, GIDBase: h.uidBase, Size: idsPerSandbox},
		User: rootfs.User{UID: int(u.uid), GID: int(u.gid), Name: u.name, Home: u.home},
	}
	for _, p := range s.places(u) {
		if p.fresh {
			continue
		}
		m := rootfs.Mount{Kind: rootfs.KindTmpfs, Destination: p.Destination, Size: int64(p.Size), Inodes: p.inodes(), Mode: p.mode(), NoExec: !p.Exec}
		if p.home {
			m.UID, m.GID = int(u.uid), int(u.gid)
		}
		plan.Mounts = append(plan.Mounts, m)
	}
	for _, b := range s.Binds {
		plan.Mounts = append(plan.Mounts, rootfs.Mount{
			Kind: rootfs.KindBind, Source: b.Source, Destination: b.Destination, ReadOnly: b.ReadOnly, AsHostRoot: b.AsHostRoot,
		})
	}
	// parents before what is mounted below them
	slices.SortStableFunc(plan.Mounts, func(a, b rootfs.Mount) int {
		return depth(a.Destination) - depth(b.Destination)
	})
	for _, m := range g.Mounts {
		if m.What&guest.Present == 0 {
			plan.MountPoints = append(plan.MountPoints, m.Target)
		}
	}
	return plan
}

// guestConfig is the part that the guest makes anew in every execution.
func guestConfig(s Spec, u user, h host) guest.Config {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	c := guest.Config{Masks: procMasks()}
	if !h.hostNetwork && s.Scope == ScopeExecute {
		c.Flags |= guest.NewNet
	}
	if !h.hostNetwork && s.Scope == ScopeSandbox {
		c.Flags |= guest.Loopback
	}
	if s.Scope == ScopeExecute {
		c.Flags |= guest.NewIPC
	}
	c.Mounts = append(c.Mounts, guest.Mount{Target: "/proc", Type: "proc", Flags: quiet | unix.MS_RDONLY})
	for _, p := range s.places(u) {
		c.Mounts = append(c.Mounts, p.mount(u))
	}
	c.Mounts = append(c.Mounts, guest.Mount{
		Target: "/dev/pts", Type: "devpts", Options: "newinstance,ptmxmode=0666,mode=0620",
		Flags: unix.MS_NOSUID | unix.MS_NOEXEC, What: guest.OnlyTTY,
	})
	for _, dir := range h.cgroupDirs {
		m := guest.Mount{Target: path.Join("/sys/fs/cgroup", dir), Type: "cgroup", Options: dir, Flags: quiet | unix.MS_RDONLY}
		if dir == "" {
			m.Type = "cgroup2"
		}
		c.Mounts = append(c.Mounts, m)
	}
	return c
}

// mount is the guest's view of a place: made by it, or only looked at.
func (p place) mount(u user) guest.Mount {
	m := guest.Mount{Target: p.Destination, Type: "tmpfs", Flags: unix.MS_NOSUID | unix.MS_NODEV, What: guest.Sized}
	m.Options = fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o", p.Size, p.inodes(), p.mode())
	if p.home {
		m.Options += fmt.Sprintf(",uid=%d,gid=%d", u.uid, u.gid)
	}
	if !p.Exec {
		m.Flags |= unix.MS_NOEXEC
	}
	if !p.fresh {
		m.What |= guest.Present
	}
	return m
}

// procMasks are the paths that runc's and docker's default configurations hide.
func procMasks() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
	}
}
