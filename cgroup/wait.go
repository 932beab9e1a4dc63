package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel delays notices that follow one another within 10 ms, so we look sooner at first, at growing
// intervals; and it drops a delayed one when another process removes the group meanwhile.
const (
	firstLook = 100 * time.Microsecond
	lostLook  = time.Second
)

// waitEvent returns when a cgroup.events file has a line, "populated 0" also when the group is gone.
func waitEvent(ctx context.Context, dir *os.File, path, line string) error {
	fd, err := open(dir, path, unix.O_RDONLY)
	if err != nil {
		return goneIsEmpty(err, line)
	}
	defer unix.Close(fd)
	var cancelled *cancelFile
	for look := firstLook; ; look = min(2*look, lostLook) {
		var buf [statSize]byte
		text, err := pread(fd, path, buf[:])
		if err != nil {
			return goneIsEmpty(err, line)
		}
		if hasLine(text, line) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s is not %q: %w", path, line, err)
		}
		if cancelled == nil { // seldom needed
			if cancelled, err = newCancelFile(ctx); err != nil {
				return err
			}
			defer cancelled.close()
		}
		if err := poll(look, unix.PollFd{Fd: int32(fd), Events: unix.POLLPRI}, cancelled.poll()); err != nil {
			return err
		}
	}
}

func goneIsEmpty(err error, line string) error {
	if line == "populated 0" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)) {
		return nil
	}
	return err
}

func hasLine(text []byte, line string) bool {
	for len(text) > 0 {
		first, rest, _ := bytes.Cut(text, newline[:])
		if string(first) == line {
			return true
		}
		text = rest
	}
	return false
}

// poll waits for any of some events. It may return early.
func poll(timeout time.Duration, fds ...unix.PollFd) error {
	t := unix.NsecToTimespec(int64(timeout))
	_, err := unix.Ppoll(fds, &t, nil)
	if err != nil && err != unix.EINTR {
		return os.NewSyscallError("ppoll", err)
	}
	return nil
}

// cancelFile is readable once a context has ended.
type cancelFile struct {
	fd   int
	stop func() bool
	told chan struct{}
}

func newCancelFile(ctx context.Context) (*cancelFile, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	c := &cancelFile{fd: fd, told: make(chan struct{})}
	c.stop = context.AfterFunc(ctx, func() {
		defer close(c.told)
		_, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 1}) // cannot block: the counter is 0
	})
	return c, nil
}

func (c *cancelFile) poll() unix.PollFd { return unix.PollFd{Fd: int32(c.fd), Events: unix.POLLIN} }

func (c *cancelFile) close() {
	if !c.stop() {
		<-c.told // the descriptor is in use until then
	}
	unix.Close(c.fd)
}
