package guest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// running is a guest in namespaces of its own on the host's root, without the engine around it.
type running struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
}

func startGuest(t *testing.T, c Config) *running {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	socket := filepath.Join(t.TempDir(), "control")
	files := make([]*os.File, 0, 5)
	listen, err := Listen(socket)
	must(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	c.Mounts = append([]Mount{{Target: "/proc", Type: "proc", Flags: unix.MS_RDONLY | unix.MS_NOSUID}}, c.Mounts...)
	config, err := c.File()
	must(t, err)
	self, err := Executable()
	must(t, err)
	files = append(files, listen, null, null, config, self)
	cmd := exec.Command("/proc/self/fd/7")
	cmd.ExtraFiles = files
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 700000, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{},
	}
	must(t, cmd.Start())
	for _, f := range files {
		f.Close()
	}
	g := &running{t: t, socket: socket, cmd: cmd}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); t.Failed() {
			t.Logf("guest: %v", err)
		}
	})
	return g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// execute runs sh -c script with change made to the request, and gives output and end.
func (g *running) execute(script string, change func(*Exec)) (string, Message) {
	g.t.Helper()
	conn, err := Dial(g.socket)
	must(g.t, err)
	defer conn.Close()
	out, m := g.on(conn, script, change)
	return out, m
}

func (g *running) on(conn *Conn, script string, change func(*Exec)) (string, Message) {
	g.t.Helper()
	r, w, err := os.Pipe()
	must(g.t, err)
	null, err := os.Open(os.DevNull)
	must(g.t, err)
	defer null.Close()
	e := &Exec{
		Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Paths: []string{"/nowhere/sh", "/bin/sh"},
		Dir: "/", UID: 1000, GID: 1000, Umask: 0o022, Stdin: null, Stdout: w, Stderr: w,
	}
	if change != nil {
		change(e)
	}
	must(g.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	must(g.t, conn.Start(e))
	w.Close()
	text := make(chan string)
	go func() { b, _ := io.ReadAll(r); text <- string(b) }()
	for {
		m, f, err := conn.Receive()
		must(g.t, err)
		if m.Kind == KindTTY {
			go func() { b, _ := io.ReadAll(f); text <- string(b) }()
			<-text // nothing comes by the pipe
		}
		if m.Kind == KindEnded || m.Kind == KindRefused {
			return <-text, m
		}
	}
}

func TestRootGuestExecutes(t *testing.T) {
	g := startGuest(t, Config{Flags: NewNet | NewIPC})
	out, m := g.execute("echo hello; id -u; exit 3", nil)
	if out != "hello\n1000\n" || m.Status.ExitStatus() != 3 || m.Step != StepNone || !m.MainEnded {
		t.Fatalf("%q %+v", out, m)
	}
	if out, m = g.execute("kill -SEGV $$", nil); m.Status.Signal() != syscall.SIGSEGV {
		t.Fatalf("%q %+v", out, m)
	}
}

func TestRootGuestSeesLittle(t *testing.T) {
	g := startGuest(t, Config{Flags: NewNet | NewIPC})
	out, m := g.execute("echo $$; ls /proc | grep -c '^[0-9]'; ls /proc/self/fd | wc -l; grep -E 'Cap|NoNew' /proc/self/status; cat /proc/1/cmdline; ls -l /proc/1/exe 2>&1", nil)
	t.Logf("%s %+v", out, m)
	if !strings.HasPrefix(out, "2\n") || strings.Count(out, "\t0000000000000000\n") != 5 || !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Fatalf("%q %+v", out, m)
	}
	if !strings.Contains(out, "ermission denied") {
		t.Errorf("process 1 can be looked into: %q", out)
	}
}

func TestRootGuestNotStarted(t *testing.T) {
	g := startGuest(t, Config{})
	_, m := g.execute("", func(e *Exec) { e.Paths = []string{"/nowhere/sh", "/bin/nope"} })
	if m.Step != StepExec || m.Errno != syscall.ENOENT {
		t.Errorf("missing: %+v", m)
	}
	_, m = g.execute("", func(e *Exec) { e.Paths = []string{"/etc/passwd"} })
	if m.Step != StepExec || m.Errno != syscall.EACCES {
		t.Errorf("not executable: %+v", m)
	}
	_, m = g.execute("", func(e *Exec) { e.Dir = "/nowhere" })
	if m.Step != StepChdir || m.Errno != syscall.ENOENT {
		t.Errorf("work dir: %+v", m)
	}
	_, m = g.execute("", func(e *Exec) { e.Filter = make([]byte, 8) })
	if m.Step.String() != "install seccomp filter" || m.Errno != syscall.EINVAL {
		t.Errorf("filter: %+v", m)
	}
}

func TestRootGuestDeadline(t *testing.T) {
	g := startGuest(t, Config{})
	start := time.Now()
	out, m := g.execute("sleep 100 & echo on; sleep 100", func(e *Exec) { e.Wall = 300 * time.Millisecond })
	if m.Reason != ReasonWall || out != "on\n" || m.Wall < 300*time.Millisecond || time.Since(start) > 10*time.Second {
		t.Fatalf("%q %+v", out, m)
	}
}

func TestRootGuestSignalEarly(t *testing.T) {
	g := startGuest(t, Config{})
	for range 20 {
		conn, err := Dial(g.socket)
		must(t, err)
		go func() { _ = conn.Signal(syscall.SIGTERM) }() // ignored before, delivered after the start: never fatal for the guest
		_, m := g.on(conn, "sleep 0.05; exit 7", nil)
		if m.Status.ExitStatus() != 7 && m.Status.Signal() != syscall.SIGTERM {
			t.Fatalf("%+v", m)
		}
		conn.Close()
	}
}

func TestRootGuestSignalReachesMain(t *testing.T) {
	g := startGuest(t, Config{})
	conn, err := Dial(g.socket)
	must(t, err)
	defer conn.Close()
	go func() { time.Sleep(300 * time.Millisecond); _ = conn.Signal(syscall.SIGUSR1) }()
	out, m := g.on(conn, "trap 'echo got; exit 5' USR1; while :; do sleep 0.01; done", func(e *Exec) { e.Wall = 10 * time.Second })
	if out != "got\n" || m.Status.ExitStatus() != 5 {
		t.Fatalf("%q %+v", out, m)
	}
}

func TestRootGuestClosedConnectionKills(t *testing.T) {
	g := startGuest(t, Config{})
	conn, err := Dial(g.socket)
	must(t, err)
	r, w, err := os.Pipe()
	must(t, err)
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	must(t, conn.Start(&Exec{Args: []string{"sleep", "1000"}, Paths: []string{"/bin/sleep"}, Dir: "/", Stdin: null, Stdout: w, Stderr: w}))
	w.Close()
	conn.Close()
	must(t, r.SetReadDeadline(time.Now().Add(5*time.Second)))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("the command lives on: %v", err)
	}
}

func TestRootGuestTTY(t *testing.T) {
	pts := Mount{Target: "/dev/pts", Type: "devpts", Options: "newinstance,ptmxmode=0666,mode=0620", What: OnlyTTY}
	g := startGuest(t, Config{Mounts: []Mount{pts}})
	for range 5 {
		out, m := g.execute("stty size; tty; ls -l /dev/pts/0 | cut -c1-10; ps -o tty= -p $$", func(e *Exec) { e.TTY, e.Rows, e.Cols = true, 40, 120 })
		if !strings.HasPrefix(out, "40 120\r\n/dev/pts/0\r\ncrw--w----\r\npts/0") {
			t.Fatalf("%q %+v", out, m)
		}
	}
}

func TestRootGuestStop(t *testing.T) {
	g := startGuest(t, Config{})
	ended := make(chan Message)
	go func() {
		_, m := g.execute("trap 'exit 9' TERM; while :; do sleep 0.01; done", nil)
		ended <- m
	}()
	time.Sleep(300 * time.Millisecond)
	conn, err := Dial(g.socket)
	must(t, err)
	defer conn.Close()
	must(t, conn.Stop(5*time.Second))
	if m := <-ended; m.Reason != ReasonStop || m.Status.ExitStatus() != 9 {
		t.Errorf("%+v", m)
	}
	if _, _, err := conn.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the guest did not end: %v", err)
	}
}

func TestRootGuestFullMounts(t *testing.T) {
	tmp := Mount{Target: "/mnt", Type: "tmpfs", Options: "size=65536,mode=1777", What: Sized}
	g := startGuest(t, Config{Mounts: []Mount{tmp}})
	_, m := g.execute("dd if=/dev/zero of=/mnt/x bs=4k 2>/dev/null; true", nil)
	if m.Full != 2 {
		t.Errorf("full %b, want 10: %+v", m.Full, m)
	}
	if _, m = g.execute("true", nil); m.Full != 0 {
		t.Errorf("full %b, want 0", m.Full)
	}
}

func TestRootGuestRefusesNonsense(t *testing.T) {
	g := startGuest(t, Config{})
	conn, err := Dial(g.socket)
	must(t, err)
	defer conn.Close()
	must(t, conn.send(&request{kind: kindExec}))
	m, _, err := conn.Receive()
	if err != nil || m.Kind != KindRefused || m.Errno != syscall.EINVAL {
		t.Fatalf("%+v %v", m, err)
	}
	r := &request{version: 99, kind: kindHello}
	if _, err := conn.c.Write(r.bytes()); err != nil {
		t.Fatal(err)
	}
	if m, _, err = conn.Receive(); err != nil || m.Errno != syscall.EPROTONOSUPPORT {
		t.Fatalf("%+v %v", m, err)
	}
	if _, err := conn.c.Write([]byte("short")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Receive(); !errors.Is(err, io.EOF) {
		t.Fatalf("nonsense did not end the connection: %v", err)
	}
	if out, _ := g.execute("echo alive", nil); out != "alive\n" {
		t.Fatalf("%q", out)
	}
}
