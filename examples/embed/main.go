// Embed shows husk inside an ordinary Go program: one line at the top of main, and nothing else of the
// program changes. It has an init function, goroutines and a child process of its own; husk runs none
// of them twice, reaps none of its children and closes none of its files.
//
//	go build -o embed ./examples/embed && sudo ./embed
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/husk-sandbox/husk/runtime"
)

// started counts init: it must be 1 in this process, and the line below must be printed once although
// husk re-executes this program to build sandboxes.
var started atomic.Int32

func init() {
	started.Add(1)
	fmt.Println("init of the embedding program")
}

func main() {
	runtime.Init() // the one line

	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	own := exec.Command("sleep", "2") // a child of this program's own
	if err := own.Start(); err != nil {
		return err
	}
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		return err
	}
	defer rt.Close()

	sb, err := rt.Create(ctx, runtime.Spec{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(ctx, true) }()

	if err := several(ctx, sb, 4); err != nil {
		return err
	}
	if err := own.Wait(); err != nil {
		return fmt.Errorf("our own child: %w", err)
	}
	fmt.Println("our own child ended by itself; init ran", started.Load(), "time")
	return nil
}

// several executes n commands at once in one sandbox.
func several(ctx context.Context, sb *runtime.Sandbox, n int) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			res, err := sb.Execute(ctx, runtime.Command{Args: []string{"sh", "-c", fmt.Sprintf("echo $((%d * 7))", i)}})
			if err != nil {
				errs[i] = err
				return
			}
			fmt.Fprintf(os.Stdout, "execution %d: %s, exit code %d: %s", i, res.Reason, res.ExitCode, res.Stdout)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
