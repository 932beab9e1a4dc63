// Embed shows husk inside an ordinary Go program: one line at the top of main, and nothing else of the
// program changes. It has init functions, a goroutine and a child process of its own; husk prints nothing
// of them twice, reaps none of its children and leaves its files alone.
//
//	go build -o embed ./examples/embed && sudo ./embed
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sync"

	_ "github.com/husk-sandbox/husk/examples/embed/library"
	"github.com/husk-sandbox/husk/runtime"
)

func init() { fmt.Println("main: init") }

func main() {
	runtime.Init() // the one line

	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	own := exec.Command("sh", "-c", "sleep 1; exit 7") // a child that husk must not reap
	if err := own.Start(); err != nil {
		return err
	}
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		return err
	}
	defer rt.Close()

	sb, err := rt.Create(ctx, runtime.Spec{Name: "embed-example"})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(ctx, true) }()

	if err := several(ctx, sb, 8); err != nil {
		return err
	}
	if err := cancelled(ctx, sb); err != nil {
		return err
	}
	fmt.Println("descriptors and threads:", entries("/proc/self/fd"), entries("/proc/self/task"))
	var exit *exec.ExitError
	if err := own.Wait(); !errors.As(err, &exit) {
		return fmt.Errorf("our own child: %w", err)
	}
	fmt.Println("our own child: exit code", exit.ExitCode())
	return nil
}

// several executes n commands at once in one sandbox.
func several(ctx context.Context, sb *runtime.Sandbox, n int) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			res, err := sb.Execute(ctx, runtime.Command{Args: []string{"sh", "-c", fmt.Sprintf("echo $((%d * 7))", i)}})
			if err == nil {
				fmt.Printf("execution %d: %s, exit code %d: %s", i, res.Reason, res.ExitCode, res.Stdout)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cancelled gives up on a command once it has said something: its whole tree is dead when Execute
// returns, with a Result.
func cancelled(ctx context.Context, sb *runtime.Sandbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := sb.Execute(ctx, runtime.Command{
		Args:   []string{"sh", "-c", "sleep 4242 & echo started; wait"},
		Stdout: onWrite(cancel),
	})
	if err != nil {
		return err
	}
	fmt.Printf("given up: %s, %s\n", res.Reason, res.Signal)
	return nil
}

// onWrite is a writer that only tells that something was written.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// entries counts what is in a directory.
func entries(dir string) int {
	list, err := os.ReadDir(dir)
	if err != nil {
		return -1
	}
	return len(list)
}
