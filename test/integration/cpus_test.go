package integration

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPU fractions, measured: time on CPUs over wall time.
func TestCPUs(t *testing.T) {
	for _, cpus := range []float64{0.2, 0.5, 1} {
		t.Run(fmt.Sprint(cpus), func(t *testing.T) {
			r, o := shResult(t, "while :; do :; done & while :; do :; done & while :; do :; done",
				"--cpus", fmt.Sprint(cpus), "--cpu-view", "host", "--timeout", "2")
			if o.code != 124 || r.CPUUser == nil || r.CPUSystem == nil {
				t.Fatalf("exit code %d, %+v", o.code, r)
			}
			// the quota is given anew each 100 ms, and a period that has begun may be used up
			used, most := *r.CPUUser+*r.CPUSystem, cpus*(r.WallSeconds+0.2)
			if used > most*1.05 || used < cpus*r.WallSeconds/4 {
				t.Errorf("used %.3f s of CPU in %.3f s with --cpus %v", used, r.WallSeconds, cpus)
			}
		})
	}
}

// More CPUs than the host has cannot be given.
func TestCPUsBad(t *testing.T) {
	type test struct{ cpus, says string }
	for _, c := range fewer(2, []test{
		{"512", "this host has"}, {"0", "unlimited"}, {"0.001", "0.01"}, {"-1", "-1"}, {"nan", "nan"}, {"inf", "inf"}, {"two", "two"},
	}) {
		husk(t, "run", "--cpus", c.cpus, "--", "true").wantError(t, "cpu", c.says)
	}
}

const showCPUs = `echo $(python3 -c 'import os; print(len(os.sched_getaffinity(0)))') $(env -u OMP_NUM_THREADS nproc) \
	$(nproc) $OMP_NUM_THREADS/$OPENBLAS_NUM_THREADS/$MKL_NUM_THREADS`

// C7: the number of CPUs that programs see follows --cpus, rounded up, and so do the thread variables.
func TestCPUView(t *testing.T) {
	n := runtime.NumCPU()
	if n < 2 {
		t.Fatal("this test needs two CPUs")
	}
	all := strconv.Itoa(n)
	type test struct {
		flags []string
		want  string
	}
	for _, c := range fewer(4, []test{
		{nil, "1 1 1 1/1/1\n"},
		{[]string{"--cpus", "0.5"}, "1 1 1 1/1/1\n"},
		{[]string{"--cpus", "1.5"}, "2 2 2 2/2/2\n"},
		{[]string{"--cpus", "2"}, "2 2 2 2/2/2\n"},
		{[]string{"--cpus", "unlimited"}, all + " " + all + " " + all + " //\n"},
		{[]string{"--cpu-view", "host"}, all + " " + all + " " + all + " //\n"},
		{[]string{"--cpuset", "1"}, "1 1 1 1/1/1\n"},
		{[]string{"--cpus", "2", "--cpuset", "1"}, "1 1 1 1/1/1\n"},
		{[]string{"-e", "OMP_NUM_THREADS=7"}, "1 1 7 7/1/1\n"}, // the caller's wins
	}) {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			sh(t, showCPUs, c.flags...).want(t, 0, c.want)
		})
	}
}

// Two sandboxes are given different CPUs while there are enough.
func TestCPUViewSpreads(t *testing.T) {
	const own = "import os; print(*os.sched_getaffinity(0))"
	a, b := create(t), create(t)
	first := husk(t, "exec", a, "--", "python3", "-c", own)
	second := husk(t, "exec", b, "--", "python3", "-c", own)
	if first.code != 0 || second.code != 0 || len(strings.Fields(first.stdout)) != 1 {
		t.Fatalf("%+v, %+v", first, second)
	}
	// other sandboxes may come and go beside this test: only then may the two be the same
	if first.stdout == second.stdout && !othersRun(t, a, b) {
		t.Errorf("both on CPU %s", first.stdout)
	}
}

func othersRun(t *testing.T, ids ...string) bool {
	t.Helper()
	list := strings.Fields(husk(t, "ps", "-q").stdout)
	return slices.ContainsFunc(list, func(id string) bool { return !slices.Contains(ids, id) })
}

// --cpuset binds: affinity is advice that a program may change, the cpuset is not.
func TestCPUSet(t *testing.T) {
	const try = `
import os
def may(cpu):
    try: os.sched_setaffinity(0, {cpu})
    except OSError: return False
    return os.sched_getaffinity(0) == {cpu}
print(may(0), may(1))`
	husk(t, "run", "--cpuset", "1", "--", "python3", "-c", try).want(t, 0, "False True\n")
	husk(t, "run", "--", "python3", "-c", try).want(t, 0, "True True\n")
	for _, list := range fewer(2, []string{"99", "1-0", "a", "0,", "-1", "0-99"}) {
		husk(t, "run", "--cpuset", list, "--", "true").wantError(t, "cpuset", list)
	}
}

// --cpu-time is of the whole tree, those that have ended included, and sleeping costs nothing.
func TestCPUTime(t *testing.T) {
	const burn = "python3 -c 'import time\nwhile time.process_time() < 0.15: pass'; "
	for _, c := range []struct {
		name, script string
	}{
		{"one process", "while :; do :; done"},
		{"many short ones", "while :; do " + burn + "done"},
		{"side by side", "while :; do :; done & while :; do :; done & wait"},
		{"orphans", "while :; do (setsid sh -c '" + strings.ReplaceAll(burn, "'", `'\''`) + "' &); sleep 0.2; done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, o := shResult(t, c.script, "--cpu-time", "0.6", "--cpus", "2", "--timeout", "60")
			if o.code != 124 || r.Reason != "cpu-timeout" || r.CPUUser == nil || r.CPUSystem == nil {
				t.Fatalf("exit code %d, %+v", o.code, r)
			}
			if used := *r.CPUUser + *r.CPUSystem; used < 0.55 || used > 0.6+patience(time.Second/4).Seconds() {
				t.Errorf("used %v s of CPU", used)
			}
		})
	}
	sh(t, "sleep 1; echo slept", "--cpu-time", "0.6").want(t, 0, "slept\n")
	o := sh(t, "while :; do :; done", "--cpu-time", "100ms")
	if o.code != 124 || !strings.Contains(o.stderr, "husk: used up its CPU time of 100ms (--cpu-time)") {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
	for _, text := range []string{"0", "-1", "abc"} {
		husk(t, "run", "--cpu-time", text, "--", "true").wantError(t, "cpu-time", text)
	}
}
