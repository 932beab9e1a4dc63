package seccomp

import "golang.org/x/sys/unix"

// action is a SECCOMP_RET_* value together with its data, as a filter returns it.
type action uint32

const (
	allow       action = unix.SECCOMP_RET_ALLOW
	logged      action = unix.SECCOMP_RET_LOG
	notify      action = unix.SECCOMP_RET_USER_NOTIF
	trap        action = unix.SECCOMP_RET_TRAP
	killThread  action = unix.SECCOMP_RET_KILL_THREAD
	killProcess action = unix.SECCOMP_RET_KILL_PROCESS

	eperm action = unix.SECCOMP_RET_ERRNO | action(unix.EPERM)
	nosys action = unix.SECCOMP_RET_ERRNO | action(unix.ENOSYS)

	// noFamily answers sockets as a kernel without that family does. Libraries know it: libaudit
	// lets programs go on, where EPERM makes useradd give up.
	noFamily action = unix.SECCOMP_RET_ERRNO | action(unix.EAFNOSUPPORT)
	// noOption answers socket options as a kernel without them does.
	noOption action = unix.SECCOMP_RET_ERRNO | action(unix.ENOPROTOOPT)
	// noAttribute answers as a file system without attributes does: cp and tar go on.
	noAttribute action = unix.SECCOMP_RET_ERRNO | action(unix.EOPNOTSUPP)
)

// maxErrno is the largest errno that the kernel passes on (MAX_ERRNO).
const maxErrno = 4095

// refuse is the action that answers a call with an errno.
func refuse(errno uint16) action { return unix.SECCOMP_RET_ERRNO | action(errno) }

// errno returns what refuse was given.
func (a action) errno() (uint16, bool) {
	return uint16(a & unix.SECCOMP_RET_DATA), a.kind() == unix.SECCOMP_RET_ERRNO
}

// kind is the action without its data.
func (a action) kind() action { return a & unix.SECCOMP_RET_ACTION_FULL }

// severity orders actions as the kernel does among stacked filters: the smallest wins.
func (a action) severity() int32 { return int32(a.kind()) }

// permits tells whether the call is carried out.
func (a action) permits() bool { return a == allow || a == logged }
