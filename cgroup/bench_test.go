package cgroup

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkRootLeaf is what an execution costs here. x/mkdir is the ratio to making and removing the
// bare directories in the same hierarchies, measured in turns.
func BenchmarkRootLeaf(b *testing.B) {
	tree := testTree(b)
	group := testGroup(b, tree, Limits{Memory: 512 << 20, PIDs: 200})
	limits := Limits{Memory: 256 << 20, CPUs: 1, PIDs: 129}
	var bare, leaf time.Duration
	for b.Loop() {
		begin := time.Now()
		bareLeaf(b, tree)
		middle := time.Now()
		l, err := group.Leaf("1", limits)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Usage(); err != nil {
			b.Fatal(err)
		}
		if err := l.Remove(); err != nil {
			b.Fatal(err)
		}
		bare += middle.Sub(begin)
		leaf += time.Since(middle)
	}
	b.ReportMetric(float64(leaf)/float64(bare), "x/mkdir")
	b.ReportMetric(float64(leaf.Microseconds())/float64(b.N), "leaf-µs")
}

func bareLeaf(b *testing.B, tree *Tree) {
	for _, h := range tree.used(false) {
		if err := os.Mkdir(at(h, tree.parent, "a1/x/bare"), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for _, h := range tree.used(false) {
		if err := os.Remove(at(h, tree.parent, "a1/x/bare")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRootGroup is what a cold run costs here; the guest's groups are made as libcontainer does.
func BenchmarkRootGroup(b *testing.B) {
	tree := testTree(b)
	var create, remove time.Duration
	for b.Loop() {
		begin := time.Now()
		group, err := tree.Create("a1", Limits{Memory: 512 << 20, CPUs: 1, PIDs: 200}, Owner{})
		if err != nil {
			b.Fatal(err)
		}
		create += time.Since(begin)
		for _, h := range tree.all {
			if err := os.MkdirAll(at(h, group.GuestPath()), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		begin = time.Now()
		if err := group.Remove(context.Background()); err != nil {
			b.Fatal(err)
		}
		remove += time.Since(begin)
	}
	b.ReportMetric(float64(create.Microseconds())/float64(b.N), "create-µs")
	b.ReportMetric(float64(remove.Microseconds())/float64(b.N), "remove-µs")
}

// BenchmarkRootRemoveBusy is a leaf whose process, a few milliseconds old, has to be killed: the kernel
// tells of its end late (see wait.go).
func BenchmarkRootRemoveBusy(b *testing.B) {
	tree := testTree(b)
	group := testGroup(b, tree, Limits{})
	var took []time.Duration
	for b.Loop() {
		leaf, err := group.Leaf("1", Limits{})
		if err != nil {
			b.Fatal(err)
		}
		started(b, leaf, "exec sleep 600")
		begin := time.Now()
		if err := leaf.Remove(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
