// Bench measures husk against what the kernel alone charges (floor.c), against runc and, where it is
// present, docker. Every figure is a ratio to, or a difference from, something measured in the same
// run, interleaved with it, since machines are noisy and absolute times say little.
//
//	make bench
//
// It needs root, gcc and a static busybox, and runc for the cold start; it says what is missing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

const busybox = "/usr/bin/busybox"

// bench is the set-up that the figures share.
type bench struct {
	dir    string // holds floor, empty, and a root with busybox
	husk   string
	rounds int
	soak   int
	rt     *runtime.Runtime
}

func main() {
	runtime.Init()
	rounds := flag.Int("rounds", 200, "rounds of each figure")
	soak := flag.Int("soak", 10000, "executions in one sandbox for the growth figures")
	husk := flag.String("husk", "bin/husk", "the binary to measure")
	flag.Parse()
	if err := run(context.Background(), &bench{rounds: *rounds, soak: *soak, husk: *husk}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "husk-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if err := b.setUp(); err != nil {
		return err
	}
	if b.rt, err = runtime.Open(runtime.Options{}); err != nil {
		return err
	}
	defer b.rt.Close()
	for _, figure := range []func(context.Context) error{b.execution, b.cold, b.version, b.idle, b.growth} {
		if err := figure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setUp compiles the programs to compare with and makes the root that floor and runc use.
func (b *bench) setUp() error {
	if _, err := os.Stat(busybox); err != nil {
		return fmt.Errorf("needs a static busybox: %w (Debian: busybox-static)", err)
	}
	empty := filepath.Join(b.dir, "empty.c")
	if err := os.WriteFile(empty, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		return err
	}
	for _, source := range []string{"bench/floor/floor.c", empty} {
		name := filepath.Base(source)
		out := filepath.Join(b.dir, name[:len(name)-2])
		if text, err := exec.Command("gcc", "-O2", "-static", "-o", out, source).CombinedOutput(); err != nil {
			return fmt.Errorf("compile %s: %w\n%s", source, err, text)
		}
	}
	for _, d := range []string{"proc", "tmp", "dev/shm", "usr/bin", "sys"} {
		if err := os.MkdirAll(filepath.Join(b.dir, "root", d), 0o755); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "root", busybox), content, 0o755)
}

// at gives the p-th percentile.
func at(times []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed runs a command to its end.
func timed(name string, args ...string) (time.Duration, error) {
	cmd := exec.Command(name, args...)
	start := time.Now()
	err := cmd.Run()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return time.Since(start), nil
}

// versus prints the ratio of two interleaved series.
func versus(what string, ours, theirs []time.Duration, target string) {
	fmt.Printf("%-58s p50 %5.2f  p99 %5.2f   (%s)\n", what,
		float64(at(ours, 50))/float64(at(theirs, 50)), float64(at(ours, 99))/float64(at(theirs, 99)), target)
}
