package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// idle: what a sandbox that does nothing is charged, one second after it was ready.
func (b *bench) idle(ctx context.Context) error {
	sb, err := b.rt.Create(ctx, runtime.Spec{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(ctx, true) }()
	time.Sleep(time.Second) // what is asked for: the state a second later
	charged, err := guestMemory(sb.ID())
	if err != nil {
		return err
	}
	fmt.Printf("%-58s %9.2f MB                (target at most 1.5 MB)\n", "idle sandbox, anon + kernel", float64(charged)/1e6)
	return nil
}

// guestMemory is anonymous and kernel memory of a sandbox's guest: memory.stat on v2; rss and
// kmem.usage on a v1 memory hierarchy.
func guestMemory(id string) (int64, error) {
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		dir := filepath.Join(root, "husk", id, "guest")
		text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum := stat(string(text), "anon") + stat(string(text), "kernel")
		if kernel, err := os.ReadFile(filepath.Join(dir, "memory.kmem.usage_in_bytes")); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(kernel)), 10, 64)
			sum = stat(string(text), "rss") + n
		}
		return sum, nil
	}
	return 0, errors.New("no memory group of the guest found")
}

func stat(text, name string) int64 {
	for line := range strings.SplitSeq(text, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// growth: many executions in one sandbox leave descriptors, memory, groups, mounts and speed as they were.
func (b *bench) growth(ctx context.Context) error {
	sb, err := b.rt.Create(ctx, runtime.Spec{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(ctx, true) }()
	part := max(b.soak/10, 1)
	first, err := executions(ctx, sb, part)
	if err != nil {
		return err
	}
	sb.Close() // what ended executions held is given back
	before, err := count(sb.ID())
	if err != nil {
		return err
	}
	if _, err := executions(ctx, sb, max(b.soak-2*part, 1)); err != nil {
		return err
	}
	last, err := executions(ctx, sb, part)
	if err != nil {
		return err
	}
	sb.Close()
	after, err := count(sb.ID())
	if err != nil {
		return err
	}
	fmt.Printf("%d executions in one sandbox: p99 of the last tenth / the first %.2f; descriptors %+d, groups %+d, mounts %+d, guest memory %+d KB\n",
		b.soak, float64(at(last, 99))/float64(at(first, 99)), after.fds-before.fds, after.groups-before.groups,
		after.mounts-before.mounts, (after.memory-before.memory)/1024)
	return nil
}

type counts struct {
	fds, groups, mounts int
	memory              int64
}

func count(id string) (counts, error) {
	var c counts
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return c, err
	}
	c.fds = len(fds)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return c, err
	}
	c.mounts = strings.Count(string(mounts), "\n")
	groups, err := filepath.Glob("/sys/fs/cgroup/*/husk/" + id + "/x/*")
	if err != nil {
		return c, err
	}
	c.groups = len(groups)
	c.memory, err = guestMemory(id)
	return c, err
}
