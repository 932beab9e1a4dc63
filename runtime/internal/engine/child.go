package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // the C half of libcontainer's re-exec
	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/runtime/internal/guest"
)

// childName is argv[0] of a child that runs the engine, and of libcontainer's re-exec of it.
const childName = "husk-engine"

// init takes over a program that was re-executed as one of our helpers: as libcontainer's init inside
// a new sandbox, or as the child that runs the engine. It has to be an init function, since those of
// the embedding program's main package must not run there, and they come after this one. In any other
// process it is two comparisons.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init() // never returns
	}
	if len(os.Args) == 1 && os.Args[0] == childName {
		LockMain()
		os.Exit(childMain())
	}
}

type childReply struct {
	PID   int
	Error *Error
}

// StartChild builds the sandbox in a child of this process.
func StartChild(ctx context.Context, c Config, f Files) (*Guest, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{childName}
	cmd.Env = []string{"GOMAXPROCS=2"}
	// The answer has a pipe of its own: init functions of the embedding program's packages may write to
	// the standard output, which goes nowhere.
	out, answer, err := os.Pipe()
	if err != nil {
		return nil, stepError("start engine", c.ID, err)
	}
	defer out.Close()
	cmd.ExtraFiles = []*os.File{answer, f.Listen, f.Alive}
	if f.Life != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f.Life)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	answer.Close()
	if err != nil {
		return nil, stepError("start engine", c.ID, err)
	}
	g, err := converse(c, in, out)
	in.Close()     // the child may go
	_ = cmd.Wait() // of its end we know from what it said, or did not say
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return g, err
}

// converse sends the configuration and takes hold of the guest before the child, its parent, ends.
func converse(c Config, in io.Writer, out io.Reader) (*Guest, error) {
	if err := json.NewEncoder(in).Encode(c); err != nil {
		return nil, stepError("start engine", c.ID, err)
	}
	var r childReply
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		return nil, stepError("start engine", c.ID, fmt.Errorf("no answer from the child: %w", err))
	}
	if r.Error != nil {
		return nil, r.Error
	}
	fd, err := unix.PidfdOpen(r.PID, 0)
	if err != nil {
		return nil, stepError("open pidfd", c.ID, err)
	}
	return &Guest{PID: r.PID, PidFD: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// childMain is the child's main: one sandbox, then it waits until its parent has taken hold.
func childMain() int {
	var c Config
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&c); err != nil {
		return 1
	}
	answer := os.NewFile(3, "answer")
	f := Files{Listen: os.NewFile(4, "listen"), Alive: os.NewFile(5, "alive")}
	if c.Guest.Flags&guest.Owned != 0 {
		f.Life = os.NewFile(6, "life")
	}
	var r childReply
	g, err := Start(context.Background(), c, f)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Step: "start engine", Text: err.Error()}
		}
		r.Error = e
	} else {
		r.PID = g.PID
	}
	if err := json.NewEncoder(answer).Encode(r); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, io.MultiReader(in.Buffered(), os.Stdin))
	return 0
}
