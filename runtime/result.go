package runtime

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Reason says who ended an execution.
type Reason string

// The reasons.
const (
	ReasonExited      Reason = "exited"       // by itself, with ExitCode
	ReasonSignalled   Reason = "signalled"    // by a signal that was not ours
	ReasonTimeout     Reason = "timeout"      // Command.Timeout passed
	ReasonCPUTimeout  Reason = "cpu-timeout"  // Command.CPUTime passed
	ReasonOOM         Reason = "oom"          // the main process was the out-of-memory killer's victim
	ReasonOutputLimit Reason = "output-limit" // Command.OutputKill
	ReasonKilled      Reason = "killed"       // the sandbox was stopped or terminated, or Kill was called
	ReasonCancelled   Reason = "cancelled"    // the caller's context ended
	ReasonNotStarted  Reason = "not-started"  // the program could not be executed: ExitCode 126 or 127, Error says why
)

// Result is how a command ended. What this host cannot measure is nil, never 0.
type Result struct {
	ID      string // of the execution
	Sandbox string // id of the sandbox

	ExitCode int    // the program's own; 128+n for signal n, ours included; 126 not executable, 127 not found
	Signal   string // "SIGSEGV", empty when no signal ended it
	Reason   Reason
	Error    string // with not-started: the cause; else empty, or why Command.Stdout or Stderr took no more

	Started   time.Time
	Wall      time.Duration
	CPUUser   *time.Duration
	CPUSystem *time.Duration

	MemoryPeak    *int64 // bytes
	PIDsPeak      *int64
	IORead        *int64 // bytes read from block devices
	IOWrite       *int64
	OOMKills      *int64   // processes of the tree killed by the out-of-memory killer
	PIDsLimitHits *int64   // forks refused
	DiskFull      []string // destinations of sized mounts that were full at the end

	Stdout, Stderr                   []byte // as far as kept; nothing when Command has a writer for it
	StdoutBytes, StderrBytes         int64  // all that was written
	StdoutTruncated, StderrTruncated bool

	Denials    []Denial // with Command.TraceDenials: at most 64 different calls
	Downgrades []string // of Spec.AllowDowngrade, what this host could not give
}

// Denial is a system call that the seccomp profile refused.
type Denial struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Count  int64  `json:"count"`
}

type resultJSON struct {
	ID               string    `json:"id"`
	Sandbox          string    `json:"sandbox"`
	ExitCode         int       `json:"exit_code"`
	Signal           *string   `json:"signal"`
	Reason           Reason    `json:"reason"`
	Error            *string   `json:"error"`
	StartedAt        time.Time `json:"started_at"`
	WallSeconds      float64   `json:"wall_seconds"`
	CPUUserSeconds   *float64  `json:"cpu_user_seconds"`
	CPUSystemSeconds *float64  `json:"cpu_system_seconds"`
	MemoryPeakBytes  *int64    `json:"memory_peak_bytes"`
	PIDsPeak         *int64    `json:"pids_peak"`
	IOReadBytes      *int64    `json:"io_read_bytes"`
	IOWriteBytes     *int64    `json:"io_write_bytes"`
	OOMKills         *int64    `json:"oom_kills"`
	PIDsLimitHits    *int64    `json:"pids_limit_hits"`
	DiskFull         []string  `json:"disk_full"`
	Stdout           string    `json:"stdout"`
	StdoutBase64     *string   `json:"stdout_base64,omitempty"`
	StdoutBytes      int64     `json:"stdout_bytes"`
	StdoutTruncated  bool      `json:"stdout_truncated"`
	Stderr           string    `json:"stderr"`
	StderrBase64     *string   `json:"stderr_base64,omitempty"`
	StderrBytes      int64     `json:"stderr_bytes"`
	StderrTruncated  bool      `json:"stderr_truncated"`
	Denials          []Denial  `json:"denials"`
	Downgrades       []string  `json:"downgrades"`
}

// MarshalJSON writes the field names and units of docs/cli.md; text that is not UTF-8 also has a
// *_base64 twin with the exact bytes.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		ID: r.ID, Sandbox: r.Sandbox, ExitCode: r.ExitCode, Signal: nonEmpty(r.Signal), Reason: r.Reason,
		Error: nonEmpty(r.Error), StartedAt: r.Started, WallSeconds: r.Wall.Seconds(),
		CPUUserSeconds: seconds(r.CPUUser), CPUSystemSeconds: seconds(r.CPUSystem),
		MemoryPeakBytes: r.MemoryPeak, PIDsPeak: r.PIDsPeak, IOReadBytes: r.IORead, IOWriteBytes: r.IOWrite,
		OOMKills: r.OOMKills, PIDsLimitHits: r.PIDsLimitHits, DiskFull: orEmpty(r.DiskFull),
		StdoutBytes: r.StdoutBytes, StdoutTruncated: r.StdoutTruncated,
		StderrBytes: r.StderrBytes, StderrTruncated: r.StderrTruncated,
		Denials: orEmpty(r.Denials), Downgrades: orEmpty(r.Downgrades),
	}
	j.Stdout, j.StdoutBase64 = textAndTwin(r.Stdout, r.StdoutTruncated)
	j.Stderr, j.StderrBase64 = textAndTwin(r.Stderr, r.StderrTruncated)
	return json.Marshal(j)
}

// textAndTwin is b as UTF-8 and, where that loses something, its base64. A character cut in two by
// truncation is dropped from the text, not shown as damage.
func textAndTwin(b []byte, truncated bool) (string, *string) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	twin := base64.StdEncoding.EncodeToString(b)
	if truncated {
		for cut := 1; cut < utf8.UTFMax && cut <= len(b); cut++ {
			if utf8.Valid(b[:len(b)-cut]) {
				return string(b[:len(b)-cut]), &twin
			}
		}
	}
	return string([]rune(string(b))), &twin
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
