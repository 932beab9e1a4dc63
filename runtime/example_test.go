package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

func TestMain(m *testing.M) {
	runtime.Init()
	os.Exit(m.Run())
}

// Run is all that it takes where nothing has to be kept: the sandbox is gone afterwards.
func ExampleRuntime_Run() {
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		log.Fatal(err) // no root, or a store of a newer version
	}
	defer rt.Close()

	res, err := rt.Run(context.Background(), runtime.Spec{}, runtime.Command{
		Args: []string{"python3", "-c", "print(6*7)"},
	})
	if err != nil {
		log.Fatal(err) // the sandbox could not be built; what the program does is never an error
	}
	fmt.Printf("%s %d: %s", res.Reason, res.ExitCode, res.Stdout)
	// Prints: exited 0: 42
}

// The state may lie elsewhere, for programs that share nothing with the husk command.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "husk-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	rt, err := runtime.Open(runtime.Options{Root: dir + "/state", Run: dir + "/run", CgroupParent: "/husk-example"})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	sandboxes, err := rt.List(context.Background())
	fmt.Println(len(sandboxes), err)
	// Prints: 0 <nil>
}

// A sandbox keeps its workspace from one execution to the next, and with ScopeSandbox what runs in the
// background, /tmp and the network, too.
func ExampleRuntime_Create() {
	ctx := context.Background()
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	sb, err := rt.Create(ctx, runtime.Spec{
		Scope:  runtime.ScopeSandbox,
		Limits: runtime.Limits{Memory: 256 * runtime.MiB, PIDs: 32},
		Labels: map[string]string{"job": "example"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Remove(ctx, true) }()

	for _, script := range []string{"echo kept > note; echo as well > /tmp/note", "cat note /tmp/note"} {
		res, err := sb.Execute(ctx, runtime.Command{Args: []string{"sh", "-c", script}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(string(res.Stdout))
	}
	// Prints:
	// kept
	// as well
}

// A program's failures are Results.
func ExampleSandbox_Execute() {
	ctx := context.Background()
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	sb, err := rt.Create(ctx, runtime.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Remove(ctx, true) }()

	for _, c := range []runtime.Command{
		{Args: []string{"sh", "-c", "exit 3"}},
		{Args: []string{"sh", "-c", "kill -SEGV $$"}},
		{Args: []string{"sleep", "60"}, Timeout: 100 * time.Millisecond},
		{Args: []string{"no-such-program"}},
	} {
		res, err := sb.Execute(ctx, c)
		fmt.Println(res.Reason, res.ExitCode, res.Signal, err)
	}
	// Prints:
	// exited 3  <nil>
	// signalled 139 SIGSEGV <nil>
	// timeout 137 SIGKILL <nil>
	// not-started 127  <nil>
}

// Stop gives programs time to end by themselves. Afterwards nothing can be executed.
func ExampleSandbox_Stop() {
	ctx := context.Background()
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	sb, err := rt.Create(ctx, runtime.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Remove(ctx, false) }()

	if err := sb.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = sb.Execute(ctx, runtime.Command{Args: []string{"true"}})
	fmt.Println(errors.Is(err, runtime.ErrStopped))
	info, err := sb.Info()
	fmt.Println(info.State, err)
	// Prints:
	// true
	// stopped <nil>
}

// Terminate ends what is running at once; whoever waits for it gets a Result.
func ExampleSandbox_Terminate() {
	ctx := context.Background()
	rt, err := runtime.Open(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	sb, err := rt.Create(ctx, runtime.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Remove(ctx, false) }()

	ready, started := io.Pipe()
	ended := make(chan runtime.Reason)
	go func() {
		res, err := sb.Execute(ctx, runtime.Command{Args: []string{"sh", "-c", "echo ready; sleep 60"}, Stdout: started})
		if err != nil {
			log.Fatal(err)
		}
		ended <- res.Reason
	}()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		log.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, ready) }()
	fmt.Println(sb.Terminate(ctx), <-ended)
	fmt.Println(sb.Terminate(ctx)) // idempotent
	// Prints:
	// <nil> killed
	// <nil>
}

// TestRootExamples runs the examples. They say what they print in a comment that is not an Output, since an
// example cannot be skipped, and these need root.
func TestRootExamples(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, example := range []struct {
		name string
		run  func()
		want string
	}{
		{"Run", ExampleRuntime_Run, "exited 0: 42\n"},
		{"Open", ExampleOpen, "0 <nil>\n"},
		{"Create", ExampleRuntime_Create, "kept\nas well\n"},
		{"Execute", ExampleSandbox_Execute, "exited 3  <nil>\nsignalled 139 SIGSEGV <nil>\ntimeout 137 SIGKILL <nil>\nnot-started 127  <nil>\n"},
		{"Stop", ExampleSandbox_Stop, "true\nstopped <nil>\n"},
		{"Terminate", ExampleSandbox_Terminate, "<nil> killed\n<nil>\n"},
	} {
		t.Run(example.name, func(t *testing.T) {
			if got := printed(t, example.run); got != example.want {
				t.Errorf("printed %q, want %q", got, example.want)
			}
		})
	}
}

// printed is what f writes to standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
