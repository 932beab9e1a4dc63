package cgroup

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestRootFreeze(t *testing.T) {
	group := testGroup(t, testTree(t), Limits{})
	leaf := testLeaf(t, group, Limits{})
	started(t, leaf, "while :; do :; done")
	for range 3 {
		if err := group.Freeze(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if got := readValue(t, x(group)+"/cgroup.freeze"); got != "1" {
			t.Errorf("cgroup.freeze is %s", got)
		}
		frozen := usedUp(t, leaf)
		time.Sleep(30 * time.Millisecond)
		if got := usedUp(t, leaf); got != frozen {
			t.Errorf("used %v while frozen", got-frozen)
		}
		if err := group.Thaw(deadline(t)); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); usedUp(t, leaf) == frozen; time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatal("does not go on after Thaw")
			}
		}
	}
}

func TestRootFreezeNobody(t *testing.T) {
	group := testGroup(t, testTree(t), Limits{})
	if err := errors.Join(group.Freeze(deadline(t)), group.Thaw(deadline(t))); err != nil {
		t.Error(err)
	}
}

// Waits end with their context, whether by a deadline or a cancel.
func TestRootWaitEnds(t *testing.T) {
	group := testGroup(t, testTree(t), Limits{})
	leaf := testLeaf(t, group, Limits{})
	cmd := started(t, leaf, "exec sleep 600")
	before := descriptors(t)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := group.WaitEmpty(ctx)
	checkError(t, err, "populated 0", "/a1/x")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline exceeded", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := group.WaitEmpty(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	// ended before it began: what already holds is still no error
	if err := group.WaitEmpty(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if err := group.Thaw(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	// and with the last process
	time.AfterFunc(50*time.Millisecond, func() { _ = cmd.Process.Kill() })
	if err := group.WaitEmpty(deadline(t)); err != nil {
		t.Error(err)
	}
}

func TestRootKill(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	one := testLeaf(t, group, Limits{})
	two, err := group.Leaf("2", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Remove()
	first := started(t, one, "trap '' TERM INT HUP; sleep 600 & sleep 600")
	second := started(t, two, "sleep 600")
	if err := one.Kill(); err != nil {
		t.Error(err)
	}
	if !first.killed() {
		t.Errorf("ended with %v", first.ProcessState)
	}
	if got := readValue(t, x(group)+"/2/cgroup.events"); got[:11] != "populated 1" {
		t.Errorf("the other leaf: %q", got)
	}
	if err := group.Kill(); err != nil {
		t.Error(err)
	}
	if !second.killed() {
		t.Errorf("ended with %v", second.ProcessState)
	}
	if err := group.WaitEmpty(deadline(t)); err != nil {
		t.Error(err)
	}
}

func TestRootRemoveFrozen(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{})
	leaf := testLeaf(t, group, Limits{})
	started(t, leaf, "sleep 600 & while :; do :; done")
	if err := group.Freeze(deadline(t)); err != nil {
		t.Fatal(err)
	}
	removeTwice(t, tree, group)
}

func TestRootForkBomb(t *testing.T) {
	tree := testTree(t)
	group := testGroup(t, tree, Limits{PIDs: 60})
	leaf := testLeaf(t, group, Limits{PIDs: 40})
	start(t, leaf, "b() { b | b & b; }; b")
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if u, err := leaf.Usage(); err != nil || *u.PIDsLimitHits > 0 {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("the limit is never hit")
		}
	}
	if err := errors.Join(group.Kill(), group.WaitEmpty(deadline(t))); err != nil {
		t.Error(err)
	}
	removeTwice(t, tree, group)
}
