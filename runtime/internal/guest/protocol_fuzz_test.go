package guest

import (
	"bytes"
	"encoding/binary"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// harness is the guest's parsing, compiled with the address and undefined-behaviour sanitizers.
type harness struct {
	mu     sync.Mutex
	in     io.WriteCloser
	out    io.Reader
	stderr bytes.Buffer
	cmd    *exec.Cmd
}

func startHarness(tb testing.TB) *harness {
	tb.Helper()
	bin := filepath.Join(tb.TempDir(), "fuzz")
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-std=gnu11", "-g", "-O1", "-Wno-unused-function",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Isrc", "-o", bin, "src/fuzz.c").CombinedOutput()
	if err != nil {
		tb.Fatalf("build harness: %v\n%s", err, out)
	}
	h := &harness{cmd: exec.Command(bin)}
	h.cmd.Stderr = &h.stderr
	h.in, _ = h.cmd.StdinPipe()
	h.out, _ = h.cmd.StdoutPipe()
	if err := h.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { h.in.Close(); _ = h.cmd.Wait() })
	return h
}

func (h *harness) try(t *testing.T, input []byte) byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	var answer [1]byte
	_ = binary.Write(h.in, binary.NativeEndian, uint32(len(input)))
	_, _ = h.in.Write(input)
	if _, err := io.ReadFull(h.out, answer[:]); err != nil {
		_ = h.cmd.Wait()
		t.Fatalf("the guest's parsing broke: %s", h.stderr.String())
	}
	return answer[0]
}

func validInput() []byte {
	e := &Exec{
		Args: []string{"sh", "-c", "true"}, Env: []string{"A=b"}, Paths: []string{"/bin/sh"}, Dir: "/",
		Filter: make([]byte, 16), Errnos: []uint16{1, 2}, Trace: true, UID: 1000, GID: 1000,
	}
	r := e.request()
	payload := e.payload(r)
	return append(append(bytes.Clone(r.bytes()), 4), payload...)
}

// TestHarness: what the host builds is accepted whole, and a damaged offset is not.
func TestHarness(t *testing.T) {
	h := startHarness(t)
	in := validInput()
	if got := h.try(t, in); got != 'o' {
		t.Fatalf("a valid request is answered %q, want 'o'", got)
	}
	bad := bytes.Clone(in)
	var r request
	payload := len(r.bytes()) + 1
	binary.NativeEndian.PutUint64(bad[payload:], 1<<40) // argv[0]
	if got := h.try(t, bad); got != 'p' {
		t.Fatalf("an argument outside the payload is answered %q, want 'p'", got)
	}
	bad = bytes.Clone(in)
	bad[len(bad)-1] = 'x' // the last string has no end
	if got := h.try(t, bad); got != 'p' {
		t.Fatalf("a payload without a final NUL is answered %q, want 'p'", got)
	}
}

// FuzzGuestMessage feeds the guest's parsing with broken requests, payloads and control messages.
func FuzzGuestMessage(f *testing.F) {
	h := startHarness(f)
	f.Add(validInput())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 1<<20 {
			return
		}
		h.try(t, input)
	})
}
