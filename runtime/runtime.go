// Package runtime (skeleton while being written).
package runtime

import (
	"context"
	"errors"
	"time"
)

// Options …
type Options struct {
	Root         string // state on disk. Empty: /var/lib/husk
	Run          string // sockets and locks. Empty: /run/husk
	CgroupParent string // below each cgroup hierarchy's root. Empty: /husk
	// InProcess runs the engine in this process instead of a child of it. Only for programs whose
	// main goroutine called Init and does nothing else on the main thread, such as the husk command.
	InProcess bool
}

// Runtime …
type Runtime struct{}

// Sandbox …
type Sandbox struct{}

// State is where a sandbox is in its life.
type State string

// The states.
const (
	StateCreating State = "creating"
	StateStarted  State = "started"
	StateStopping State = "stopping"
	StateStopped  State = "stopped"
	StateError    State = "error"
)

// Info describes a sandbox without touching it.
type Info struct {
	ID        string            `json:"id"`
	Name      string            `json:"name,omitempty"`
	State     State             `json:"state"`
	Reason    string            `json:"reason,omitempty"` // why it is stopped or in error
	Snapshot  string            `json:"snapshot"`
	Labels    map[string]string `json:"labels,omitempty"`
	Scope     Scope             `json:"scope"`
	Network   string            `json:"network"`
	CreatedAt time.Time         `json:"created_at"`
}

var errNotYet = errors.New("not yet")

// DefaultGrace is the time between SIGTERM and SIGKILL in Stop.
const DefaultGrace = 10 * time.Second

// Init must be the first statement of main in a program that embeds husk.
func Init() {}

// Open …
func Open(o Options) (*Runtime, error) { return nil, errNotYet }

// Close …
func (rt *Runtime) Close() error { return nil }

// Create …
func (rt *Runtime) Create(ctx context.Context, spec Spec) (*Sandbox, error) { return nil, errNotYet }

// Run creates a sandbox, executes, destroys.
func (rt *Runtime) Run(ctx context.Context, spec Spec, c Command) (Result, error) {
	return Result{}, errNotYet
}

// Sandbox finds one by id or name: ErrNotFound.
func (rt *Runtime) Sandbox(ref string) (*Sandbox, error) { return nil, errNotYet }

// List …
func (rt *Runtime) List(ctx context.Context) ([]Info, error) { return nil, errNotYet }

// ID …
func (sb *Sandbox) ID() string { return "" }

// Info …
func (sb *Sandbox) Info() (Info, error) { return Info{}, errNotYet }

// Execute …
func (sb *Sandbox) Execute(ctx context.Context, c Command) (Result, error) { return Result{}, errNotYet }

// Stop sends SIGTERM to every execution, waits for DefaultGrace, then kills; idempotent.
func (sb *Sandbox) Stop(ctx context.Context) error { return errNotYet }

// StopWithin is Stop with another grace.
func (sb *Sandbox) StopWithin(ctx context.Context, grace time.Duration) error { return errNotYet }

// Terminate kills now; idempotent.
func (sb *Sandbox) Terminate(ctx context.Context) error { return errNotYet }

// Remove destroys it with its files; ErrInvalid-typed error when still running and not force.
func (sb *Sandbox) Remove(ctx context.Context, force bool) error { return errNotYet }
