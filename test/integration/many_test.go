package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/husk-sandbox/husk/runtime"
)

// TestManyAtOnce: more executions at once than a guest has slots for; the last ones wait for one.
func TestManyAtOnce(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	rt, err := runtime.Open(runtime.Options{Root: s.root, Run: s.run, CgroupParent: s.top})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := rt.Create(ctx, runtime.Spec{Limits: runtime.Limits{Memory: 2 * runtime.GiB, PIDs: 400}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 140 {
		wg.Go(func() {
			res, err := sb.Execute(ctx, runtime.Command{Args: []string{"sleep", "1"}, Timeout: runtime.NoTimeout})
			if err != nil || res.ExitCode != 0 {
				t.Errorf("execution %d: %v, %+v", i, err, res)
			}
		})
	}
	wg.Wait()
	if err := sb.Remove(ctx, true); err != nil {
		t.Error(err)
	}
	s.nothingLeft()
}
