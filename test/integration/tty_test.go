package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a terminal that a user sits at: husk has its slave as its controlling terminal, and
// everything that appears on it is collected.
type console struct {
	master, slave *os.File
	before        unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer
}

func openConsole(t *testing.T, rows, cols uint16) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	control(t, master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{master: master, slave: slave}
	c.resize(t, rows, cols)
	c.before = c.mode(t)
	done := make(chan struct{})
	go c.collect(done)
	t.Cleanup(func() { slave.Close(); <-done; master.Close() })
	return c
}

// control leaves f as it is; with f.Fd() a pending Read would keep it from being closed.
func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { err = do(int(fd)) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

// collect ends when every slave is closed.
func (c *console) collect(done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := c.master.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.seen.Write(buf[:n])
		c.mu.Unlock()
	}
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.String()
}

func (c *console) resize(t *testing.T, rows, cols uint16) {
	t.Helper()
	control(t, c.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

func (c *console) mode(t *testing.T) unix.Termios {
	t.Helper()
	var mode *unix.Termios
	control(t, c.slave, func(fd int) (err error) {
		mode, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return *mode
}

func (c *console) wantRestored(t *testing.T) {
	t.Helper()
	if now := c.mode(t); now != c.before {
		t.Errorf("the terminal was left in another mode: %+v; before %+v", now, c.before)
	}
}

func (c *console) isRaw(t *testing.T) bool {
	t.Helper()
	return c.mode(t).Lflag&unix.ICANON == 0
}

func (c *console) typed(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// until waits for a text on the screen.
func (c *console) until(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(patience(10 * time.Second))
	for !strings.Contains(c.text(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("the terminal shows %q, not %q", c.text(), text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// begin starts husk on the console, as a login shell would.
func (c *console) begin(t *testing.T, args ...string) *started {
	t.Helper()
	return begin(t, func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = c.slave, c.slave, c.slave
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	}, args...)
}

// run waits for the end of husk on the console.
func (c *console) run(t *testing.T, args ...string) int {
	t.Helper()
	code := c.begin(t, args...).wait(t, 20*time.Second).code
	c.wantRestored(t)
	return code
}

// B16: the first program sees the right size, every time.
func TestTTYSize(t *testing.T) {
	id := create(t)
	for i := range rounds(50) {
		c := openConsole(t, 40, 120)
		where := []string{"exec", "-it", id}
		if i%10 == 0 {
			where = []string{"run", "-it"}
		}
		if code := c.run(t, append(where, "--", "stty", "size")...); code != 0 {
			t.Errorf("exit code %d", code)
		}
		c.until(t, "40 120\r\n")
	}
	c := openConsole(t, 0, 0) // some terminals do not know their size
	c.run(t, "run", "-it", "--", "stty", "size")
	c.until(t, "24 80\r\n")
}

// B16: a new size reaches the program, with SIGWINCH, however early it comes.
func TestTTYResize(t *testing.T) {
	const program = `
import signal, os
winch = {signal.SIGWINCH}
signal.pthread_sigmask(signal.SIG_BLOCK, winch)
print("ready", *os.get_terminal_size(), flush=True)
while signal.sigwait(winch): print("winch", *os.get_terminal_size(), flush=True)`
	c := openConsole(t, 40, 120)
	s := c.begin(t, "run", "-it", "--", "python3", "-c", program)
	c.until(t, "ready 120 40")
	c.resize(t, 50, 100)
	c.until(t, "winch 100 50")
	c.resize(t, 10, 20)
	c.until(t, "winch 20 10")
	c.typed(t, "\x1c") // ^\
	if o := s.wait(t, 10*time.Second); o.code != 131 {
		t.Errorf("exit code %d", o.code)
	}
	c.wantRestored(t)
	for range rounds(10) { // right after the start
		c := openConsole(t, 40, 120)
		s := c.begin(t, "run", "-it", "--", "sh", "-c", "until stty size | grep '50 100'; do :; done")
		eventually(t, 10*time.Second, "raw mode", func() bool { return c.isRaw(t) })
		c.resize(t, 50, 100)
		if o := s.wait(t, 10*time.Second); o.code != 0 {
			t.Errorf("exit code %d", o.code)
		}
	}
}

// All three streams are one terminal, of the sandbox's own devpts, and the program's controlling one.
func TestTTYInside(t *testing.T) {
	c := openConsole(t, 24, 80)
	const program = `
import os, sys
print("tty", *[os.isatty(i) for i in range(3)], flush=True)
print("name", os.ttyname(0), os.stat("/dev/pts/0").st_uid == os.getuid(), sorted(os.listdir("/dev/pts")), flush=True)
print("session", os.getsid(0) == os.getpid() == os.tcgetpgrp(0), os.path.exists("/dev/tty") and os.isatty(os.open("/dev/tty", os.O_RDWR)), flush=True)
print("term", os.environ.get("TERM"), flush=True)
m, s = os.openpty()
print("own", os.ttyname(s), flush=True)
os.write(2, b"on stderr\n")`
	if code := c.run(t, "run", "-it", "--", "python3", "-c", program); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, text := range []string{
		"tty True True True\r\n", "name /dev/pts/0 True ['0', 'ptmx']\r\n", "session True True\r\n", "term xterm", "own /dev/pts/1\r\n", "on stderr\r\n",
	} {
		if !strings.Contains(c.text(), text) {
			t.Errorf("no %q in %q", text, c.text())
		}
	}
}

// An interactive shell works: echo, line editing, job control, end of file by ^D.
func TestTTYShell(t *testing.T) {
	c := openConsole(t, 24, 80)
	s := c.begin(t, "run", "-it", "--", "bash", "--norc", "-i")
	c.until(t, "$ ")
	if !c.isRaw(t) {
		t.Error("the terminal is not raw while the program runs: keys would be echoed twice")
	}
	c.typed(t, "echo $((6*7))x\r")
	c.until(t, "42x\r\n")
	c.typed(t, "sleep 300\r")
	c.until(t, "sleep 300\r\n")
	time.Sleep(100 * time.Millisecond)
	c.typed(t, "\x1a") // ^Z
	c.until(t, "Stopped")
	c.typed(t, "jobs -p | wc -l; kill %1; exec 2>&1; tty\r")
	c.until(t, "/dev/pts/0")
	if regexp.MustCompile(`no job control|cannot set terminal`).MatchString(c.text()) {
		t.Errorf("%q", c.text())
	}
	c.typed(t, "exit 6\r")
	if o := s.wait(t, 10*time.Second); o.code != 6 {
		t.Errorf("exit code %d; %q", o.code, c.text())
	}
	c.wantRestored(t)

	c = openConsole(t, 24, 80)
	s = c.begin(t, "run", "-it", "--", "cat")
	eventually(t, 10*time.Second, "raw mode", func() bool { return c.isRaw(t) })
	c.typed(t, "line\r")
	c.until(t, "line\r\nline\r\n") // its echo and cat's answer
	c.typed(t, "\x04")
	if o := s.wait(t, 10*time.Second); o.code != 0 {
		t.Errorf("exit code %d", o.code)
	}
	c.wantRestored(t)
}

// ^C reaches the program, not husk.
func TestTTYInterrupt(t *testing.T) {
	c := openConsole(t, 24, 80)
	s := c.begin(t, "run", "-it", "--", "sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done")
	c.until(t, "ready")
	c.typed(t, "\x03")
	if o := s.wait(t, 10*time.Second); o.code != 9 || !strings.Contains(c.text(), "^Ccaught\r\n") {
		t.Errorf("exit code %d, %q", o.code, c.text())
	}
	c.wantRestored(t)
	c = openConsole(t, 24, 80)
	mark := newMark(t)
	s = c.begin(t, "run", "-it", "-e", "MARK="+mark, "--", "sleep", "300")
	eventually(t, 10*time.Second, "the program sleeps", func() bool { return len(holders(mark)) > 0 })
	c.typed(t, "\x03")
	if o := s.wait(t, 10*time.Second); o.code != 130 {
		t.Errorf("exit code %d", o.code)
	}
	c.wantRestored(t)
}

// Raw mode is undone whatever ends the program or husk.
func TestTTYRestored(t *testing.T) {
	id := create(t)
	for _, c := range []struct {
		name, script string
		args         []string
		do           func(*testing.T, *started)
		code         int
	}{
		{"exit", "exit 3", []string{"run"}, nil, 3},
		{"killed", "kill -9 $$", []string{"run"}, nil, 137},
		{"not found", "", []string{"run"}, nil, 127},
		{"timeout", "sleep 300", []string{"run", "--timeout", "0.5"}, nil, 124},
		{"out of memory", "exec python3 -c '" + hog + "'", []string{"run", "--memory", "64m"}, nil, 137},
		{"error of husk's", "true", []string{"run", "-w", "/no/such"}, nil, 125},
		{"terminal changed by the program", "stty -echo raw; tput smcup 2>/dev/null; exit 1", []string{"run"}, nil, 1},
		{"TERM to husk", "echo ready; sleep 300", []string{"run"}, sendTo(unix.SIGTERM), 143},
		{"HUP to husk", "echo ready; sleep 300", []string{"run"}, sendTo(unix.SIGHUP), 129},
		{"TERM thrice, program deaf", "trap '' TERM; echo ready; sleep 300 & while :; do wait; done", []string{"run"}, func(t *testing.T, s *started) {
			for range 3 {
				sendTo(unix.SIGTERM)(t, s)
				time.Sleep(20 * time.Millisecond)
			}
		}, 130},
		{"sandbox stopped", "echo ready; sleep 300", []string{"exec"}, func(t *testing.T, _ *started) {
			husk(t, "stop", "--grace", "0", id)
		}, 137},
	} {
		t.Run(c.name, func(t *testing.T) {
			console := openConsole(t, 24, 80)
			args := append(append([]string{}, c.args...), "-it")
			if c.args[0] == "exec" {
				args = append(args, id)
			}
			program := []string{"--", "sh", "-c", c.script}
			if c.name == "not found" {
				program = []string{"--", "no-such-program"}
			}
			s := console.begin(t, append(args, program...)...)
			if c.do != nil {
				console.until(t, "ready")
				c.do(t, s)
			}
			if o := s.wait(t, 20*time.Second); o.code != c.code {
				t.Errorf("exit code %d, want %d; %q", o.code, c.code, console.text())
			}
			console.wantRestored(t)
		})
	}
}

func sendTo(sig unix.Signal) func(*testing.T, *started) {
	return func(t *testing.T, s *started) {
		t.Helper()
		if err := s.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
}

// When the window is closed, the program gets SIGHUP and nothing stays.
func TestTTYHangUp(t *testing.T) {
	mark := newMark(t)
	c := openConsole(t, 24, 80)
	s := c.begin(t, "run", "-it", "-e", "MARK="+mark, "--", "sh", "-c", "echo ready; sleep 300 & wait")
	c.until(t, "ready")
	c.master.Close()
	s.wait(t, 10*time.Second)
	wantNothingLeft(t, mark, "")
}

// Everything that is written to the terminal is seen, the last words too.
func TestTTYNothingLost(t *testing.T) {
	c := openConsole(t, 24, 80)
	n := rounds(20000)
	if code := c.run(t, "run", "-it", "--", "sh", "-c", fmt.Sprintf("seq 1 %d; printf last", n)); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var want strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&want, "%d\r\n", i)
	}
	want.WriteString("last")
	c.until(t, "last")
	if got := c.text(); got != want.String() {
		t.Errorf("%d bytes of %d", len(got), want.Len())
	}
	for range rounds(30) {
		c := openConsole(t, 24, 80)
		c.run(t, "run", "-it", "--", "echo", "hello")
		c.until(t, "hello\r\n")
	}
}

// A background process that holds the terminal keeps nothing up (B1).
func TestTTYHeldByGrandchild(t *testing.T) {
	mark := newMark(t)
	c := openConsole(t, 24, 80)
	s := c.begin(t, "run", "-it", "-e", "MARK="+mark, "--", "sh", "-c", "setsid sh -c 'trap \"\" HUP; sleep 300' & sleep 0.2; echo started")
	if o := s.wait(t, 5*time.Second); o.code != 0 {
		t.Errorf("exit code %d", o.code)
	}
	c.until(t, "started\r\n")
	wantNothingLeft(t, mark, "")
	c.wantRestored(t)
}

// -t without -i shows output on the terminal and takes no keys.
func TestTTYWithoutInput(t *testing.T) {
	c := openConsole(t, 40, 120)
	if code := c.run(t, "run", "-t", "--", "sh", "-c", "stty size; test -t 1 && echo yes"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.until(t, "40 120")
	c.until(t, "yes")
	s := c.begin(t, "run", "-t", "--", "sleep", "0.3")
	if c.isRaw(t) {
		t.Error("raw mode without -i")
	}
	if o := s.wait(t, 10*time.Second); o.code != 0 {
		t.Errorf("exit code %d", o.code)
	}
}

// Without a terminal, -t is a clear error, and nothing is made; so is --json with it.
func TestTTYNone(t *testing.T) {
	husk(t, "run", "-it", "--", "true").wantError(t, "--tty", "not a terminal")
	husk(t, "run", "-t", "--", "true").wantError(t, "--tty", "not a terminal")
	c := openConsole(t, 24, 80)
	s := begin(t, func(cmd *exec.Cmd) { cmd.Stdout = c.slave }, "run", "-it", "--", "true")
	if o := s.wait(t, 10*time.Second); o.code != 125 || !strings.Contains(o.stderr, "standard input is not a terminal") {
		t.Errorf("%+v", o)
	}
	if code := c.run(t, "run", "-it", "--json", "--", "true"); code != 125 {
		t.Errorf("exit code %d", code)
	}
	c.until(t, "--json")
	c.wantRestored(t)
	// without -t there is none inside, whatever husk has
	c = openConsole(t, 24, 80)
	if code := c.run(t, "run", "-i", "--", "sh", "-c", "tty; test -t 1 || echo none; exec 3</dev/tty"); code == 0 {
		t.Error("/dev/tty could be opened")
	}
	c.until(t, "not a tty")
	c.until(t, "none")
}
