package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// started is a husk whose program has said that it is ready.
type started struct {
	*exec.Cmd
	pipe   io.ReadCloser
	out    *bufio.Reader
	state  string // its store
	stderr bytes.Buffer
}

// start runs a shell script in a sandbox and waits for its first line, "ready".
func start(t *testing.T, script string) *started {
	t.Helper()
	husk := os.Getenv("HUSK_BIN")
	if husk == "" {
		husk = "husk" // TestMain put it into PATH
	}
	own, remove, err := ownPlaces(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	s := &started{Cmd: exec.CommandContext(t.Context(), husk, "run", "--timeout", "60", "--", "sh", "-c", script)}
	s.Env = os.Environ()
	for name, value := range own {
		s.Env = append(s.Env, name+"="+value)
	}
	s.Cmd.Stderr = &s.stderr
	s.state = own["HUSK_ROOT"]
	if s.pipe, err = s.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Process.Kill()
		_ = s.Wait()
	})
	s.out = bufio.NewReader(s.pipe)
	if line, err := s.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v: %s", line, err, s.stderr.String())
	}
	return s
}

// end waits for husk, and returns its exit code and the rest of its output.
func (s *started) end(t *testing.T) (int, string) {
	t.Helper()
	watch := time.AfterFunc(20*time.Second, func() { _ = s.Process.Kill() })
	defer watch.Stop()
	rest, err := io.ReadAll(s.out)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	return s.ProcessState.ExitCode(), string(rest)
}

func (s *started) send(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// TestRootSignals: each of the signals for the program reaches it.
func TestRootSignals(t *testing.T) {
	needRoot(t)
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		s := start(t, `trap 'echo got; exit 7' `+name+`; echo ready; while :; do sleep 0.05; done`)
		s.send(t, sig)
		if code, out := s.end(t); code != 7 || out != "got\n" || s.stderr.Len() > 0 {
			t.Errorf("%s: exit code %d, printed %q, %s", name, code, out, s.stderr.String())
		}
	}
}

// TestRootThirdInterrupt: a program that ignores the first two is killed by the third.
func TestRootThirdInterrupt(t *testing.T) {
	needRoot(t)
	s := start(t, `trap 'echo ignored' INT TERM; echo ready; while :; do sleep 0.05; done`)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s.send(t, sig)
		if line, err := s.out.ReadString('\n'); line != "ignored\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	s.send(t, syscall.SIGINT)
	if code, _ := s.end(t); code != exitCancelled || s.stderr.String() != "husk: killed: interrupted\n" {
		t.Errorf("exit code %d, %s", code, s.stderr.String())
	}
}

// TestRootClosedOutput: when nobody reads any more, the program gets SIGPIPE as in any pipeline, and
// husk lives to clean up.
func TestRootClosedOutput(t *testing.T) {
	needRoot(t)
	s := start(t, "echo ready; exec yes")
	if err := s.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	if code := s.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) || s.stderr.Len() > 0 {
		t.Errorf("exit code %d, %s", code, s.stderr.String())
	}
	left, err := os.ReadDir(s.state + "/sandboxes")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
