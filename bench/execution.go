package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// batch is how many rounds of one kind run before the other's turn.
const batch = 10

// execution: `busybox true` in a live sandbox through the Go API, against the floor. The two take turns;
// each pair of batches gives one ratio of medians.
func (b *bench) execution(ctx context.Context) error {
	sb, err := b.rt.Create(ctx, runtime.Spec{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(ctx, true) }()
	var ours, floors, ratios []time.Duration
	for len(ours) < max(b.rounds, 200) {
		p50, all, err := b.floor(batch)
		if err != nil {
			return err
		}
		times, err := executions(ctx, sb, batch)
		if err != nil {
			return err
		}
		ours, floors = append(ours, times...), append(floors, all)
		ratios = append(ratios, time.Duration(float64(at(times, 50))/float64(p50)*1e6))
	}
	fmt.Printf("%-58s p50 %5.2f  p99 %5.2f   (floors; target p50 at most 2.0)\n", "execution in a live sandbox / floor",
		float64(at(ratios, 50))/1e6, float64(at(ours, 99))/float64(at(floors, 99)))
	return nil
}

func executions(ctx context.Context, sb *runtime.Sandbox, n int) ([]time.Duration, error) {
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		res, err := sb.Execute(ctx, runtime.Command{Args: []string{busybox, "true"}})
		times[i] = time.Since(start)
		if err != nil || res.ExitCode != 0 {
			return nil, fmt.Errorf("execution %d: %w, %+v", i, err, res)
		}
	}
	return times, nil
}

// floor runs n rounds of floor.c; its median, and its slowest.
func (b *bench) floor(n int) (p50, p99 time.Duration, err error) {
	out, err := exec.Command(filepath.Join(b.dir, "floor"), "-n", strconv.Itoa(n), filepath.Join(b.dir, "root"), busybox, "true").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("floor: %w", err)
	}
	var line struct {
		P50 float64 `json:"p50_ms"`
		P99 float64 `json:"p99_ms"`
	}
	if err := json.Unmarshal(out, &line); err != nil {
		return 0, 0, err
	}
	unit := float64(time.Millisecond)
	return time.Duration(line.P50 * unit), time.Duration(line.P99 * unit), nil
}
