package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection to a guest; one execution at a time can be on it. Closing it kills the
// execution.
type Conn struct{ c *net.UnixConn }

// Listen makes the socket of a guest at path. The file is to be inherited by the guest as its
// descriptor 3; the caller must Close it.
func Listen(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	err = withShortPath(path, func(short string) error {
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: short}); err != nil {
			return err
		}
		return unix.Listen(fd, 128)
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return f, nil
}

// Dial connects to the guest whose socket is at path. ECONNREFUSED or ENOENT: it is gone.
func Dial(path string) (*Conn, error) {
	var c *net.UnixConn
	err := withShortPath(path, func(short string) error {
		var err error
		c, err = net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: short, Net: "unixpacket"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to guest: %w", err)
	}
	return &Conn{c}, nil
}

// withShortPath calls use with a name of path that fits into a socket address (108 bytes, unix(7)).
func withShortPath(path string, use func(string) error) error {
	if len(path) < 100 {
		return use(path)
	}
	dir, base := path, ""
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			dir, base = path[:i], path[i:]
			break
		}
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fmt.Sprintf("/proc/self/fd/%d%s", fd, base))
}

// Close ends the connection, and the execution on it.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds the waiting of Start and Receive; zero: no bound.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// Start asks for an execution. The answer comes by Receive.
func (c *Conn) Start(e *Exec) error {
	r := e.request()
	payload, err := sealed("husk-exec", e.payload(r), 0)
	if err != nil {
		return err
	}
	defer payload.Close()
	if _, _, err := c.c.WriteMsgUnix(r.bytes(), unix.UnixRights(e.fds(payload)...), nil); err != nil {
		return fmt.Errorf("send execution to guest: %w", err)
	}
	return nil
}

// Signal sends sig to the execution's main process.
func (c *Conn) Signal(sig syscall.Signal) error {
	return c.send(&request{kind: kindSignal, signal: uint32(sig)})
}

// Kill kills the execution; KindEnded follows.
func (c *Conn) Kill() error { return c.send(&request{kind: kindKill}) }

// Stop has the guest send SIGTERM to every execution, wait for grace at most, kill what is left, and
// end. The connection then breaks.
func (c *Conn) Stop(grace time.Duration) error {
	return c.send(&request{kind: kindStop, graceNS: uint64(grace)})
}

// Hello asks for a sign of life: KindVersion.
func (c *Conn) Hello() error { return c.send(&request{kind: kindHello}) }

func (c *Conn) send(r *request) error {
	r.version = Version
	if _, err := c.c.Write(r.bytes()); err != nil {
		return fmt.Errorf("send to guest: %w", err)
	}
	return nil
}

// Receive waits for the next message; io.EOF when the guest is gone. The file is the terminal's
// master, only with KindTTY; the caller must Close it.
func (c *Conn) Receive() (Message, *os.File, error) {
	var r reply
	var oob [64]byte
	n, noob, flags, _, err := c.c.ReadMsgUnix(r.bytes(), oob[:])
	if errors.Is(err, syscall.ECONNRESET) || (err == nil && n == 0) {
		return Message{}, nil, io.EOF
	}
	if err != nil {
		return Message{}, nil, fmt.Errorf("receive from guest: %w", err)
	}
	file, err := oneFile(oob[:noob])
	if err == nil && (n != len(r.bytes()) || flags&unix.MSG_CTRUNC != 0) {
		err = fmt.Errorf("receive from guest: %d bytes, want %d (another version of husk?)", n, len(r.bytes()))
	}
	m := r.message()
	if err == nil && (file != nil) != (m.Kind == KindTTY) {
		err = fmt.Errorf("receive from guest: unexpected message %d", m.Kind)
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return Message{}, nil, err
	}
	return m, file, nil
}

// oneFile takes the descriptor out of a control message; all others are closed.
func oneFile(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("receive from guest: %w", err)
	}
	var file *os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			if file != nil {
				unix.Close(fd)
				continue
			}
			// so that reads and writes of the terminal go through the poller and can be interrupted
			_ = unix.SetNonblock(fd, true)
			file = os.NewFile(uintptr(fd), "ptmx")
		}
	}
	return file, nil
}
