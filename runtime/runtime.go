// Package runtime runs untrusted programs in sandboxes on a plain Linux host: namespaces, cgroups,
// a read-only root, a seccomp filter, no daemon.
//
//	func main() {
//		runtime.Init()
//		rt, err := runtime.Open(runtime.Options{})
//		…
//		res, err := rt.Run(ctx, runtime.Spec{}, runtime.Command{Args: []string{"python3", "-c", "print(6*7)"}})
//	}
//
// A program's failure is a Result; an error means that the sandbox could not be built or observed.
// The zero Spec is the tightest sandbox; what this host cannot give is an error naming it.
//
// A sandbox is made by Create, runs any number of commands with Execute, alone or at once, and is
// destroyed by Remove; Run does all three. Stop and Terminate end a sandbox and leave its entry in the
// store. Every error wraps one of the Err… values that a caller may decide on, or is a *SetupError.
//
// Limits: about 80 executions at once in one sandbox, and 4095 sandboxes on a host with the range of
// user ids that husk registers for itself. docs/limits.md has the rest.
//
// All methods may be called by several goroutines and processes at once. A context that ends kills
// what the call started, reaps it and reports. An attached execution dies with the process that
// started it.
//
// It needs root, Linux 6.1 or later, and cgroup v2 (pure, or hybrid with v1 controllers). See
// docs/security.md for what it does and does not protect against.
package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
	"github.com/husk-sandbox/husk/runtime/internal/engine"
)

// Options say where the state is. The zero value is the host's own.
type Options struct {
	Root         string // state on disk. Empty: /var/lib/husk
	Run          string // sockets and locks, on a tmpfs. Empty: /run/husk
	CgroupParent string // below each cgroup hierarchy's root. Empty: /husk
	// InProcess builds sandboxes in this process instead of a short-lived child of it, which saves
	// two program starts. libcontainer then treats the process as its own: it marks all descriptors
	// close-on-exec. Only for programs whose main is ours, such as the husk command.
	InProcess bool
}

// Runtime is an opened store. Make one with Open; it holds few resources, and any number of
// processes may have the same store open.
type Runtime struct {
	opts  Options
	store store

	mu   sync.Mutex
	tree *cgroup.Tree // opened on first use
}

// Init must be the first statement of main in a program that embeds husk: it reserves the main thread,
// so that no sandbox's mount namespace is ever left on it.
//
// To build a sandbox, husk starts this program again for a moment, twice. There neither main nor an init
// function of package main is reached; init functions of packages that the program imports may run. What
// they print goes nowhere, they find an environment of few variables, and must not read standard input.
func Init() { engine.LockMain() }

// Open opens the store and makes it if it is not there. It fails without root, and on a store written
// by a newer version.
func Open(o Options) (*Runtime, error) {
	if o.Root == "" {
		o.Root = "/var/lib/husk"
	}
	if o.Run == "" {
		o.Run = "/run/husk"
	}
	if o.CgroupParent == "" {
		o.CgroupParent = "/husk"
	}
	if os.Geteuid() != 0 {
		return nil, &SetupError{"open store", o.Root, errors.New("husk needs root to make namespaces and cgroups: run it with sudo")}
	}
	for _, dir := range []*string{&o.Root, &o.Run} {
		abs, err := filepath.Abs(*dir) // the paths travel to other processes
		if err != nil {
			return nil, &SetupError{"open store", *dir, err}
		}
		*dir = abs
	}
	rt := &Runtime{opts: o, store: store{root: o.Root, run: o.Run}}
	return rt, rt.store.open()
}

// Close ends the use of the store; sandboxes live on. In this version it has nothing to do: what was opened
// of the cgroup file systems is closed when the Runtime is garbage.
func (rt *Runtime) Close() error { return nil }

// cgroups opens the cgroup tree once.
func (rt *Runtime) cgroups() (*cgroup.Tree, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.tree != nil {
		return rt.tree, nil
	}
	tree, err := cgroup.Open(rt.opts.CgroupParent)
	var missing *cgroup.UnavailableError
	if errors.As(err, &missing) {
		err = unavailable{err}
	}
	if err != nil {
		return nil, &SetupError{"open cgroups", rt.opts.CgroupParent, err}
	}
	rt.tree = tree
	return tree, nil
}

// Create makes a sandbox and starts its guest. It outlives this process, until somebody calls Remove.
// ErrExists: the name is taken. ErrInvalid: the Spec is wrong, and everything that is wrong with it is
// named. When ctx ends before the sandbox is ready, nothing is left of it.
func (rt *Runtime) Create(ctx context.Context, spec Spec) (*Sandbox, error) {
	return rt.create(ctx, spec, nil)
}

// Run creates a sandbox, executes one command in it and destroys it: nothing is left behind. When this
// process is killed meanwhile, the command ends at once, and the next Create, Run or List by anybody
// clears the rest. Errors are those of Create and Execute.
func (rt *Runtime) Run(ctx context.Context, spec Spec, c Command) (Result, error) {
	full := spec.withDefaults("x")
	if err := errors.Join(full.validate(), c.withDefaults(full).validate(full)); err != nil {
		return Result{}, err
	}
	var life [2]int
	if err := unix.Pipe2(life[:], unix.O_CLOEXEC); err != nil {
		return Result{}, &SetupError{"make pipe", "", err}
	}
	theirs, ours := os.NewFile(uintptr(life[0]), "life"), os.NewFile(uintptr(life[1]), "life")
	defer ours.Close()
	sb, err := rt.create(ctx, spec, theirs)
	theirs.Close()
	if err != nil {
		return Result{}, err
	}
	res, err := sb.Execute(ctx, c)
	// what ends the sandbox must not be cut short by the context that ended the command
	if e := sb.destroy(context.WithoutCancel(ctx)); err == nil && e != nil {
		err = e
	}
	_ = sb.group.Close() // nobody else has this handle; else its descriptors wait for the collector
	return res, err
}

// Sandbox finds a sandbox by its id or name: ErrNotFound.
func (rt *Runtime) Sandbox(ref string) (*Sandbox, error) {
	id, err := rt.store.resolve(ref)
	if err != nil {
		return nil, err
	}
	st, err := rt.store.load(id)
	if err != nil {
		return nil, err
	}
	return &Sandbox{rt: rt, st: st}, nil
}

// List describes all sandboxes, the oldest first, after it has cleared what dead ones left.
func (rt *Runtime) List(ctx context.Context) ([]Info, error) {
	if err := rt.sweep(ctx); err != nil {
		return nil, err
	}
	ids, err := rt.store.list()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(ids))
	for _, id := range ids {
		if st, err := rt.store.load(id); err == nil {
			infos = append(infos, st.info())
		}
	}
	sortInfos(infos)
	return infos, nil
}

// Info describes a sandbox.
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

func (st *state) info() Info {
	scope := st.Spec.Scope
	if scope == ScopeExecute {
		scope = "execute"
	}
	return Info{
		ID: st.ID, Name: st.Spec.Name, State: st.State, Reason: st.Reason, Snapshot: st.Spec.Snapshot,
		Labels: st.Spec.Labels, Scope: scope, Network: st.Spec.Network.String(), CreatedAt: st.CreatedAt,
	}
}

// unavailable says ErrUnavailable of an error that has its own text for it.
type unavailable struct{ error }

func (u unavailable) Unwrap() []error { return []error{ErrUnavailable, u.error} }

func wrapStep(step, subject string, err error) error {
	var s *SetupError
	if err == nil || errors.As(err, &s) || errors.Is(err, ErrInvalid) {
		return err
	}
	var e *engine.Error
	if errors.As(err, &e) {
		return &SetupError{e.Step, e.Subject, engineCause{e}}
	}
	return &SetupError{step, subject, err}
}

// engineCause prints only the cause, since the SetupError around it says step and subject.
type engineCause struct{ err *engine.Error }

func (e engineCause) Error() string { return e.err.Text }

func (e engineCause) Unwrap() error { return e.err.Unwrap() }
