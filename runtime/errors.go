package runtime

import (
	"errors"
	"fmt"
)

// Decisions a caller may want to make on an error; test with errors.Is. Other failures are SetupErrors.
var (
	// ErrNotFound: no sandbox of that id or name.
	ErrNotFound = errors.New("no such sandbox")
	// ErrExists: the name is taken.
	ErrExists = errors.New("name is taken")
	// ErrStopped: the sandbox is not running; nothing was started, so trying again is safe.
	ErrStopped = errors.New("sandbox is not running")
	// ErrInvalid: the Spec, Command or name is wrong, or a running sandbox was to be removed without
	// force; nothing was touched.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: all ranges of user ids are in use. What else this host cannot give, a controller
	// or a swap limit, is a SetupError whose text names it.
	ErrUnavailable = errors.New("not available on this host")
)

// SetupError is a failure of ours to build or observe a sandbox or an execution: which step, on
// what, and why (the errno is kept: errors.Is(err, fs.ErrPermission) works).
type SetupError struct {
	Step    string // "mount tmpfs", "chdir", …
	Subject string // the path, limit or id it was about; may be empty
	Err     error
}

func (e *SetupError) Error() string {
	if e.Subject == "" {
		return fmt.Sprintf("%s: %v", e.Step, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Step, e.Subject, e.Err)
}

// Unwrap gives the cause.
func (e *SetupError) Unwrap() error { return e.Err }
