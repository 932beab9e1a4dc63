// Package engine builds a sandbox with libcontainer: namespaces, user mapping, root, the guest's own
// cgroup, and the guest as process 1. It is the only importer of runc's libcontainer, whose Go API
// has no compatibility promise and which treats the process it runs in as its own: it marks all
// descriptors close-on-exec, needs the main thread for itself, and re-executes the program.
//
// So there are two ways to call it. Start runs it in this process; the caller's main goroutine must
// be locked to the main thread (LockMain). StartChild runs it in a short-lived child of this
// process, which costs two program starts more and disturbs nothing.
//
//	caller                          engine (a locked thread, or a child's)          inside
//	Start(Config, Files) ─────────► unshare mount namespace
//	                                rootfs.Assemble: root, binds, /dev
//	                                libcontainer Create, Run ────────────────────► guest (from a memfd)
//	◄── Guest{PID, PidFD} ───────── thread ends; only the sandbox holds the mounts
package engine

import (
	"context"
	"errors"
	"io"
	"os"
	goruntime "runtime"
	"strings"
	"syscall"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/rootfs"
	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

// Config is one sandbox as the engine needs it; plain data, since it may travel to a child.
type Config struct {
	ID          string
	StateDir    string      // libcontainer's own state; made, removed by the caller
	CgroupPath  string      // of the guest's own group
	HostNetwork bool        // no network namespace
	Root        rootfs.Plan // Target and Dev must exist
	// Guest is the guest's configuration. The targets of its mounts (but Present ones) must be
	// Root.MountPoints in the same order; they are replaced by what they resolve to.
	Guest guest.Config
}

// Files are handed to the guest. The caller keeps and closes its own.
type Files struct {
	Listen *os.File // its socket
	Alive  *os.File // the lock that says it lives
	Life   *os.File // nil, or ends the guest when its other end is closed
}

// Guest is a started process 1.
type Guest struct {
	PID   int
	PidFD *os.File // the caller must Close it
	// Reap waits for the process when it is a child of ours; nil when it is not.
	Reap func()
}

// Error is a failed step, also across the boundary to a child.
type Error struct {
	Step    string
	Subject string
	Text    string
	Errno   syscall.Errno // 0: none
}

func (e *Error) Error() string { return e.Step + ": " + e.Text }

// Unwrap gives the errno, so that errors.Is(err, fs.ErrPermission) works.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

func stepError(step, subject string, err error) error {
	e := &Error{Step: step, Subject: subject, Text: err.Error()}
	errors.As(err, &e.Errno)
	return e
}

// LockMain keeps the main thread out of the way: libcontainer joins the container's mount namespace
// on a thread that it then lets Go destroy, which Go cannot do with the first one. To be called on
// the main goroutine before anything else runs.
func LockMain() { goruntime.LockOSThread() }

// Start builds the sandbox in this process.
func Start(ctx context.Context, c Config, f Files) (*Guest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	logrus.SetOutput(io.Discard)
	// libcontainer hands this one variable on to its init, which then starts with one thread less.
	_ = os.Setenv("GOMAXPROCS", "1")
	// The cgroups module keeps a descriptor of the cgroup mount from its first use on; taken in a
	// sandbox's private mount namespace it would go stale with that.
	_, _ = cgroups.ReadFile("/sys/fs/cgroup", "cgroup.controllers")
	type answer struct {
		g   *Guest
		err error
	}
	done := make(chan answer, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine, and its mount namespace with it.
		goruntime.LockOSThread()
		g, err := start(c, f)
		done <- answer{g, err}
	}()
	a := <-done
	return a.g, a.err
}

func start(c Config, f Files) (*Guest, error) {
	if err := checkOpenFiles(maxima()); err != nil {
		return nil, stepError("start guest", c.ID, err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, stepError("unshare mount namespace", "", err)
	}
	// The caller's umask must not decide who can enter the root's directories. The mount namespace
	// came with this thread's own umask (unshare(2)), so nobody else's is changed.
	unix.Umask(0o022)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, stepError("make mounts private", "", err)
	}
	if err := assemble(&c); err != nil {
		return nil, err
	}
	if err := expose(&c); err != nil {
		return nil, err
	}
	files, err := guestFiles(c, f)
	if err != nil {
		return nil, stepError("prepare guest", c.ID, err)
	}
	defer closeAll(files.own)
	return run(c, files.inherit)
}

// assemble mounts root and /dev, and puts the resolved mount points into the guest's configuration.
func assemble(c *Config) error {
	result, err := rootfs.Assemble(c.Root)
	if err != nil {
		return stepError("assemble root", c.Root.Target, err)
	}
	next := 0
	for i := range c.Guest.Mounts {
		if m := &c.Guest.Mounts[i]; m.What&guest.Present == 0 {
			if next >= len(result.MountPoints) {
				return stepError("assemble root", m.Target, errors.New("bug: fewer mount points than mounts"))
			}
			m.Target = result.MountPoints[next]
			next++
		}
	}
	return nil
}

// expose moves root and /dev to a place whose parents everybody may search: libcontainer's init reaches
// them by path as the sandbox's mapped root, and the run directory may lie below one that is closed to
// others. The place is a tmpfs over some directory that nothing here needs; only the sandbox's mount
// namespace has it.
func expose(c *Config) error {
	scratch, err := scratchDir(c.StateDir)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size=4k"); err != nil {
		return stepError("mount scratch tmpfs", scratch, err)
	}
	for name, place := range map[string]*string{"root": &c.Root.Target, "dev": &c.Root.Dev} {
		to := scratch + "/" + name
		if err := os.Mkdir(to, 0o711); err != nil {
			return stepError("make mount point", to, err)
		}
		if err := unix.MoveMount(unix.AT_FDCWD, *place, unix.AT_FDCWD, to, 0); err != nil {
			return stepError("move mount", *place, err)
		}
		*place = to
	}
	return nil
}

// scratchDir is a directory of every Linux host that libcontainer's state is not below.
func scratchDir(state string) (string, error) {
	for _, dir := range []string{"/mnt", "/media", "/srv", "/opt", "/home"} {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && !strings.HasPrefix(state+"/", dir+"/") {
			return dir, nil
		}
	}
	return "", stepError("find mount point", "", errors.New("this host has none of /mnt /media /srv /opt /home: make one of them"))
}

type inherited struct {
	inherit []*os.File // descriptors 3… of the guest, in the order of proto.h
	own     []*os.File // of those, what we opened
}

func guestFiles(c Config, f Files) (inherited, error) {
	self, err := guest.Executable()
	if err != nil {
		return inherited{}, err
	}
	config, err := c.Guest.File()
	if err != nil {
		self.Close()
		return inherited{}, err
	}
	life := f.Life
	if life == nil {
		life = config // a place holder; the guest looks at it only when Owned
	}
	return inherited{[]*os.File{f.Listen, f.Alive, life, config, self}, []*os.File{self, config}}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func run(c Config, inherit []*os.File) (*Guest, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, stepError("open", os.DevNull, err)
	}
	defer null.Close()
	container, err := libcontainer.Create(c.StateDir, "guest", libcontainerConfig(c))
	if err != nil {
		return nil, stepError("create container", c.ID, err)
	}
	p := guestProcess(inherit, null)
	if err := container.Run(p); err != nil {
		_ = container.Destroy()
		return nil, stepError("start container", c.ID, err)
	}
	return started(p)
}

// started takes hold of the guest while it cannot yet be reaped, so that its pid is surely its own.
func started(p *libcontainer.Process) (*Guest, error) {
	pid, err := p.Pid()
	if err != nil {
		return nil, stepError("find guest", "", err)
	}
	g := &Guest{PID: pid, Reap: func() { _, _ = p.Wait() }}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, stepError("open pidfd", "", err)
	}
	g.PidFD = os.NewFile(uintptr(fd), "pidfd")
	return g, nil
}
