package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cold: a whole `husk run`, against `runc run` with equal limits, and against docker where there is one.
func (b *bench) cold(context.Context) error {
	args := []string{"run", "--", busybox, "true"}
	if _, err := exec.LookPath("runc"); err != nil {
		fmt.Println("husk run / runc run: runc is not here (Debian: runc)")
	} else if err := b.coldVersus("husk run / runc run", "target p50 at most 1.0", args, b.runc); err != nil {
		return err
	}
	if exec.Command("docker", "version").Run() != nil {
		fmt.Println("husk run / docker run --rm: no docker engine is here")
		return nil
	}
	return b.coldVersus("husk run / docker run --rm", "target p50 at most 0.1", args, b.docker)
}

func (b *bench) coldVersus(what, target string, args []string, other func(int) (time.Duration, error)) error {
	var ours, theirs []time.Duration
	for i := range b.rounds {
		t, err := other(i)
		if err != nil {
			return err
		}
		theirs = append(theirs, t)
		if t, err = timed(b.husk, args...); err != nil {
			return err
		}
		ours = append(ours, t)
	}
	versus(what, ours, theirs, target)
	return nil
}

// runc runs the same program from a bundle that `runc spec` made, with husk's default limits.
func (b *bench) runc(i int) (time.Duration, error) {
	if i == 0 {
		if err := b.bundle(); err != nil {
			return 0, err
		}
	}
	return timed("runc", "run", "--bundle", b.dir, "husk-bench-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i))
}

func (b *bench) bundle() error {
	if out, err := exec.Command("runc", "spec", "--bundle", b.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("runc spec: %w: %s", err, out)
	}
	path := filepath.Join(b.dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	spec["process"].(map[string]any)["args"] = []string{busybox, "true"}
	spec["process"].(map[string]any)["terminal"] = false
	spec["root"].(map[string]any)["path"] = "root"
	spec["linux"].(map[string]any)["resources"].(map[string]any)["memory"] = map[string]any{"limit": 512 << 20}
	spec["linux"].(map[string]any)["resources"].(map[string]any)["cpu"] = map[string]any{"quota": 100000, "period": 100000}
	spec["linux"].(map[string]any)["resources"].(map[string]any)["pids"] = map[string]any{"limit": 128}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// docker runs an image that holds nothing but the same root.
func (b *bench) docker(i int) (time.Duration, error) {
	if i == 0 {
		load := exec.Command("sh", "-c", "tar -C "+filepath.Join(b.dir, "root")+" -c . | docker import - husk-bench")
		if out, err := load.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("docker import: %w: %s", err, out)
		}
	}
	return timed("docker", "run", "--rm", "--network=none", "--memory=512m", "--cpus=1", "--pids-limit=128", "husk-bench", busybox, "true")
}

// version: the binary's own start, against a static C program that does nothing.
func (b *bench) version(context.Context) error {
	var ours, theirs []time.Duration
	for range max(b.rounds, 200) {
		t, err := timed(filepath.Join(b.dir, "empty"))
		if err != nil {
			return err
		}
		theirs = append(theirs, t)
		if t, err = timed(b.husk, "version"); err != nil {
			return err
		}
		ours = append(ours, t)
	}
	fmt.Printf("%-58s p50 %5.2f ms  p99 %5.2f ms   (target p50 at most 4 ms)\n", "husk version - an empty static C program",
		ms(at(ours, 50)-at(theirs, 50)), ms(at(ours, 99)-at(theirs, 99)))
	return b.packageInit()
}

// packageInit adds up what the Go runtime reports of package initialisation.
func (b *bench) packageInit() error {
	var sums []time.Duration
	for range 11 {
		cmd := exec.Command(b.husk, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			return err
		}
		sum := time.Duration(0)
		for line := range strings.SplitSeq(trace.String(), "\n") {
			// "init fmt @0.1 ms, 0.02 ms clock, 16 bytes, 1 allocs"
			if fields := strings.Fields(line); len(fields) > 5 && fields[0] == "init" {
				clock, _ := strconv.ParseFloat(fields[4], 64)
				sum += time.Duration(clock * float64(time.Millisecond))
			}
		}
		sums = append(sums, sum)
	}
	fmt.Printf("%-58s p50 %5.2f ms                 (target under 2 ms)\n", "package initialisation of husk", ms(at(sums, 50)))
	return nil
}
