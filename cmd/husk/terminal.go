package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/husk-sandbox/husk/runtime"
)

// terminal is the caller's terminal while a program has it.
type terminal struct {
	input  *os.File // put in raw mode; nil without -i
	output *os.File
	before *term.State
}

// openTerminal checks that there is one where -t (and -i) need it; without -t there is none, and no
// error. It changes nothing.
func (in *invocation) openTerminal(f *commandFlags) (*terminal, error) {
	if !f.tty {
		return nil, nil
	}
	t := &terminal{}
	var ok bool
	if t.output, ok = asTerminal(in.stdout); !ok {
		return nil, errors.New("standard output is not a terminal: leave -t out")
	}
	if !f.stdin {
		return t, nil
	}
	if t.input, ok = asTerminal(in.stdin); !ok {
		return nil, errors.New("standard input is not a terminal: leave -t out, and use -i alone for a pipe or file")
	}
	return t, nil
}

func asTerminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// raw passes every key on to the program, until restore. The caller must call restore.
func (t *terminal) raw() (err error) {
	if t.input == nil {
		return nil
	}
	t.before, err = term.MakeRaw(int(t.input.Fd()))
	if err != nil {
		return fmt.Errorf("--tty: set terminal to raw mode: %w", err)
	}
	return nil
}

func (t *terminal) restore() {
	if t.before != nil {
		_ = term.Restore(int(t.input.Fd()), t.before)
	}
}

// size of the terminal; some say 0 × 0, for which programs get the usual one.
func (t *terminal) size() runtime.TTYSize {
	cols, rows, err := term.GetSize(int(t.output.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return runtime.TTYSize{Rows: 24, Cols: 80}
	}
	return runtime.TTYSize{Rows: uint16(min(rows, 1<<16-1)), Cols: uint16(min(cols, 1<<16-1))}
}

// watch delivers each new size, until stop.
func (t *terminal) watch() (sizes <-chan runtime.TTYSize, stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	to := make(chan runtime.TTYSize)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
			case <-done:
				return
			}
			select {
			case to <- t.size():
			case <-done:
				return
			}
		}
	}()
	return to, func() {
		signal.Stop(changed)
		close(done)
	}
}
