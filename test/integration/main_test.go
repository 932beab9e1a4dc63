// Package integration drives the husk binary as a user does, and asserts on what the user and the host
// see. It needs root and runs on hybrid and on pure cgroup v2 hosts alike.
//
//	make test-root                         here
//	make test-vm                           in virtual machines with pure cgroup v2
//	HUSK_BIN=bin/husk go test ./test/integration -run TestTimeout
package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// bin is the binary under test.
var bin string

func TestMain(m *testing.M) {
	runtime.Init()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Println("integration: skipped, needs root")
		return 0
	}
	bin = os.Getenv("HUSK_BIN")
	if bin == "" {
		bin = "../../bin/husk"
	}
	path, err := filepath.Abs(bin)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		fmt.Println("integration: no binary to test: make husk:", err)
		return 1
	}
	bin = path
	return m.Run()
}

// inVM: the emulated CPU is slow to start processes there.
func inVM() bool { return os.Getenv("HUSK_VM") != "" }

// patience stretches a deadline where processes are slow to start.
func patience(d time.Duration) time.Duration {
	if inVM() {
		return 10 * d
	}
	return 2 * d
}

// rounds is a soak count, scaled down in the VM.
func rounds(n int) int {
	if inVM() {
		return max(n/20, 2)
	}
	return n
}

// heavy skips programs that take minutes under emulation, with the reason that the suite accepts.
func heavy(t *testing.T, what string) {
	t.Helper()
	if inVM() {
		t.Skip("heavy: " + what)
	}
}

// outcome is one finished husk command.
type outcome struct {
	stdout, stderr string
	code           int // -1: killed by a signal
	took           time.Duration
}

// husk runs the binary with args and no input.
func husk(t *testing.T, args ...string) outcome {
	t.Helper()
	return huskInput(t, nil, args...)
}

// huskInput runs the binary with args; a test that takes longer than a minute (stretched) fails.
func huskInput(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	start := time.Now()
	err := cmd.Run()
	o := outcome{out.String(), errOut.String(), cmd.ProcessState.ExitCode(), time.Since(start)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("husk %q: %v", args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("husk %q: still running after %v; stdout %q, stderr %q", args, o.took, o.stdout, o.stderr)
	}
	return o
}

// sh runs a script in a fresh sandbox: husk run FLAGS -- sh -c SCRIPT.
func sh(t *testing.T, script string, flags ...string) outcome {
	t.Helper()
	return husk(t, append(append([]string{"run"}, flags...), "--", "sh", "-c", script)...)
}

// result is the JSON of a Result; docs/cli.md has the fields.
type result struct {
	ID              string   `json:"id"`
	Sandbox         string   `json:"sandbox"`
	ExitCode        int      `json:"exit_code"`
	Signal          *string  `json:"signal"`
	Reason          string   `json:"reason"`
	Error           *string  `json:"error"`
	WallSeconds     float64  `json:"wall_seconds"`
	CPUUser         *float64 `json:"cpu_user_seconds"`
	CPUSystem       *float64 `json:"cpu_system_seconds"`
	MemoryPeak      *int64   `json:"memory_peak_bytes"`
	PIDsPeak        *int64   `json:"pids_peak"`
	IORead          *int64   `json:"io_read_bytes"`
	IOWrite         *int64   `json:"io_write_bytes"`
	OOMKills        *int64   `json:"oom_kills"`
	PIDsLimitHits   *int64   `json:"pids_limit_hits"`
	DiskFull        []string `json:"disk_full"`
	Stdout          string   `json:"stdout"`
	StdoutBase64    *string  `json:"stdout_base64"`
	StdoutBytes     int64    `json:"stdout_bytes"`
	StdoutTruncated bool     `json:"stdout_truncated"`
	Stderr          string   `json:"stderr"`
	StderrBytes     int64    `json:"stderr_bytes"`
	StderrTruncated bool     `json:"stderr_truncated"`
	Denials         []struct {
		Number int    `json:"number"`
		Name   string `json:"name"`
		Count  int64  `json:"count"`
	} `json:"denials"`
	Downgrades []string `json:"downgrades"`
}

// shResult runs a script in a fresh sandbox with --json.
func shResult(t *testing.T, script string, flags ...string) (result, outcome) {
	t.Helper()
	o := sh(t, script, append(flags, "--json")...)
	return decode(t, o), o
}

func decode(t *testing.T, o outcome) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatalf("not a Result: %v; stdout %q, stderr %q, exit code %d", err, o.stdout, o.stderr, o.code)
	}
	return r
}

// want compares an outcome; code -2 is any.
func (o outcome) want(t *testing.T, code int, stdout string) {
	t.Helper()
	if o.code != code || o.stdout != stdout {
		t.Errorf("exit code %d, stdout %q, stderr %q; want %d, %q", o.code, o.stdout, o.stderr, code, stdout)
	}
}

// wantError: ours, exit code 125, one line on stderr that contains all of parts, nothing on stdout.
func (o outcome) wantError(t *testing.T, parts ...string) {
	t.Helper()
	line := strings.TrimSuffix(o.stderr, "\n")
	if o.code != 125 || o.stdout != "" || strings.Contains(line, "\n") || !strings.HasPrefix(line, "husk: ") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 125 and one line", o.code, o.stdout, o.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(line, part) {
			t.Errorf("stderr %q does not say %q", line, part)
		}
	}
}

// create makes a sandbox that is removed at the end of the test, and gives its id.
func create(t *testing.T, flags ...string) string {
	t.Helper()
	o := husk(t, append([]string{"create"}, flags...)...)
	id := strings.TrimSpace(o.stdout)
	if o.code != 0 || id == "" {
		t.Fatalf("create %q: exit code %d, stderr %q", flags, o.code, o.stderr)
	}
	t.Cleanup(func() { husk(t, "rm", "-f", id) })
	return id
}

// eventually waits until ok, at most for d (stretched), and fails the test otherwise.
func eventually(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience(d))
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not so after %v: %s", patience(d), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
