package runtime

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the pipes or the terminal of one execution, and the goroutines that pump them. A command
// never gets a descriptor of the caller's.
type streams struct {
	cmd     *Command
	onLimit func()

	stdin, stdout, stderr *os.File // the command's ends; nil with a terminal
	in                    *os.File // our end of stdin
	out, err              *sink
	master                *os.File
	size                  *TTYSize // asked for before there was a master
	mu                    sync.Mutex

	pumps sync.WaitGroup
	ended atomic.Bool
}

// sink takes one output stream.
type sink struct {
	from  *os.File
	to    io.Writer // nil: keep
	kept  []byte
	limit int64 // -1: none
	total atomic.Int64
	over  atomic.Bool
	fail  error
}

func newStreams(c *Command, onLimit func()) (*streams, error) {
	s := &streams{cmd: c, onLimit: onLimit, out: newSink(c, c.Stdout), err: newSink(c, c.Stderr)}
	if c.TTY != nil {
		return s, nil
	}
	var undo cleanup
	defer undo.run()
	var err error
	if s.out.from, s.stdout, err = outputPipe(&undo); err != nil {
		return nil, err
	}
	if s.err.from, s.stderr, err = outputPipe(&undo); err != nil {
		return nil, err
	}
	if err := s.openStdin(); err != nil {
		return nil, err
	}
	undo.release()
	return s, nil
}

func newSink(c *Command, to io.Writer) *sink {
	return &sink{to: to, limit: int64(c.Output)}
}

// outputPipe: our end is polled by Go, the command's end blocks as programs expect.
func outputPipe(undo *cleanup) (ours, theirs *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, &SetupError{"make pipe", "", err}
	}
	_ = unix.SetNonblock(p[0], true)
	ours, theirs = os.NewFile(uintptr(p[0]), "output"), os.NewFile(uintptr(p[1]), "output")
	undo.add(func() { ours.Close(); theirs.Close() })
	return ours, theirs, nil
}

func (s *streams) openStdin() error {
	if s.cmd.Stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return &SetupError{"open", os.DevNull, plain(err)}
		}
		s.stdin = null
		return nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return &SetupError{"make pipe", "", err}
	}
	_ = unix.SetNonblock(p[1], true)
	s.stdin, s.in = os.NewFile(uintptr(p[0]), "stdin"), os.NewFile(uintptr(p[1]), "stdin")
	return nil
}

// giveTo makes pipes the command's own, so that it can open them once more by /dev/stdout and its kind.
func (s *streams) giveTo(uid, gid int) error {
	files := []*os.File{s.stdout, s.stderr}
	if s.in != nil { // else it is a device of the host's
		files = append(files, s.stdin)
	}
	for _, f := range files {
		if f == nil {
			continue // a terminal, which the guest gives away
		}
		if err := f.Chown(uid, gid); err != nil {
			return &SetupError{"give pipe to user", "", plain(err)}
		}
	}
	return nil
}

// start gives up the command's ends, so that end of file can be seen, and pumps.
func (s *streams) start() {
	s.closeTheirs()
	if s.cmd.TTY != nil {
		return // when the master arrives
	}
	s.pump(s.out)
	s.pump(s.err)
	if s.in != nil {
		go s.feed(s.in)
	}
}

func (s *streams) closeTheirs() {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// attach takes the terminal's master.
func (s *streams) attach(master *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.master = master
	if s.size != nil {
		setSize(master, *s.size)
	}
	s.out.from = master
	s.pump(s.out)
	if s.cmd.Stdin != nil {
		go s.feed(master)
	}
}

// resize keeps a size that comes before the terminal itself.
func (s *streams) resize(size TTYSize) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master == nil {
		s.size = &size
		return
	}
	setSize(s.master, size)
}

// setSize has no error to report: a terminal whose program has ended needs no size.
func setSize(master *os.File, size TTYSize) {
	raw, err := master.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

// feed copies the caller's input. A command that does not read to the end is no error (EPIPE). The
// goroutine ends with the command, or, when the caller's reader blocks, with that.
func (s *streams) feed(to *os.File) {
	_, _ = io.Copy(onlyWriter{to}, onlyReader{s.cmd.Stdin})
	if to == s.in {
		to.Close()
	} else {
		_, _ = to.Write([]byte{4}) // a terminal's end of file
	}
}

// onlyReader and onlyWriter hide ReadFrom and WriteTo, with which io.Copy would splice from a file of the
// caller's in ways that cannot be interrupted.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

const pumpBuffer = 64 << 10

func (s *streams) pump(k *sink) {
	s.pumps.Add(1)
	go func() {
		defer s.pumps.Done()
		buf := make([]byte, pumpBuffer)
		for {
			if s.ended.Load() {
				_ = k.from.SetReadDeadline(time.Now().Add(drainQuiet))
			}
			n, err := k.from.Read(buf)
			if n > 0 && !k.take(buf[:n], s) {
				k.from.Close() // the command's next write fails, as in any pipeline
				return
			}
			if err != nil {
				return // EIO is how a terminal's master says end of file
			}
		}
	}()
}

// take passes on or keeps one piece; false when nobody takes any more.
func (k *sink) take(b []byte, s *streams) bool {
	total := k.total.Add(int64(len(b)))
	if k.limit >= 0 && total > k.limit && s.cmd.OutputKill && k.over.CompareAndSwap(false, true) {
		s.onLimit()
	}
	if k.to != nil {
		_, k.fail = k.to.Write(b)
		return k.fail == nil
	}
	if k.limit >= 0 {
		b = b[:min(int64(len(b)), max(k.limit-int64(len(k.kept)), 0))]
	}
	k.kept = append(k.kept, b...)
	return true
}

// finish waits until all output is taken. The command is dead.
func (s *streams) finish() error {
	s.ended.Store(true)
	for _, k := range []*sink{s.out, s.err} {
		if k.from != nil {
			_ = k.from.SetReadDeadline(time.Now().Add(drainQuiet))
		}
	}
	s.pumps.Wait()
	s.closeOurs()
	for _, k := range []*sink{s.out, s.err} {
		if k.fail != nil && !errors.Is(k.fail, syscall.EPIPE) && !errors.Is(k.fail, io.ErrClosedPipe) {
			return k.fail
		}
	}
	return nil
}

func (s *streams) closeOurs() {
	for _, f := range []*os.File{s.in, s.out.from, s.err.from} {
		if f != nil {
			f.Close()
		}
	}
}

// abandon closes everything; for executions that never ran or were lost.
func (s *streams) abandon() {
	s.closeTheirs()
	s.closeOurs()
	s.pumps.Wait()
}

func (s *streams) overLimit() bool { return s.out.over.Load() || s.err.over.Load() }

func (s *streams) report(r *Result) {
	r.Stdout, r.StdoutBytes, r.StdoutTruncated = s.out.result()
	r.Stderr, r.StderrBytes, r.StderrTruncated = s.err.result()
}

func (k *sink) result() (kept []byte, total int64, truncated bool) {
	total = k.total.Load()
	return k.kept, total, k.to == nil && total > int64(len(k.kept))
}
