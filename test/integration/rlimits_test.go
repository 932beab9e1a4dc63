package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const showLimit = "import resource as r; print(*(r.getrlimit(getattr(r, 'RLIMIT_' + n)) for n in %q.split()))"

// The limits of each process: defaults, and raised and lowered by the caller.
func TestRlimit(t *testing.T) {
	const all = "CORE NOFILE STACK MEMLOCK SIGPENDING MSGQUEUE NICE RTPRIO"
	type test struct {
		names string
		flags []string
		want  string
	}
	for _, c := range fewer(3, []test{
		{all, nil, "(1, 1) (1024, 1024) (16777216, -1) (8388608, 8388608) (4096, 4096) (819200, 819200) (0, 0) (0, 0)\n"},
		{"CPU FSIZE DATA RSS AS", nil, "(-1, -1) (-1, -1) (-1, -1) (-1, -1) (-1, -1)\n"},
		{"NOFILE", []string{"--rlimit", "nofile=4096"}, "(4096, 4096)\n"},
		{"NOFILE", []string{"--rlimit", "nofile=10:20"}, "(10, 20)\n"},
		{"CORE", []string{"--rlimit", "core=unlimited"}, "(-1, -1)\n"},
		{"STACK", []string{"--rlimit", "stack=64m:unlimited"}, "(67108864, -1)\n"},
		{"FSIZE AS", []string{"--rlimit", "fsize=10m", "--rlimit", "as=4g"}, "(10485760, 10485760) (4294967296, 4294967296)\n"},
	}) {
		t.Run(strings.Join(append(c.flags, c.names), " "), func(t *testing.T) {
			args := append(append([]string{"run"}, c.flags...), "--", "/usr/bin/python3", "-c", fmt.Sprintf(showLimit, c.names))
			husk(t, args...).want(t, 0, c.want)
		})
	}
}

// mayRaise: with CAP_SYS_RESOURCE this host's maxima are the kernel's, else those of this test itself.
func mayRaise(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "CapEff:\t")
	caps, err := strconv.ParseUint(strings.SplitN(text, "\n", 2)[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return caps>>unix.CAP_SYS_RESOURCE&1 == 1
}

// A caller may raise up to the host's maxima, which are not husk's own present limits.
func TestRlimitRaise(t *testing.T) {
	type test struct{ name, flag, want string }
	for _, c := range fewer(5, []test{
		{"NOFILE", "nofile=500000:1000000", "(500000, 1000000)\n"},
		{"MEMLOCK", "memlock=unlimited", "(-1, -1)\n"},
		{"SIGPENDING", "sigpending=200000", "(200000, 200000)\n"},
		{"RTPRIO", "rtprio=10", "(10, 10)\n"},
		{"NICE", "nice=20", "(20, 20)\n"},
	}) {
		o := husk(t, "run", "--rlimit", c.flag, "--", "/usr/bin/python3", "-c", fmt.Sprintf(showLimit, c.name))
		if mayRaise(t) {
			o.want(t, 0, c.want)
		} else {
			o.wantError(t, "rlimit "+strings.ToLower(c.name), "more than this host allows")
		}
	}
	which := "-S"
	if mayRaise(t) {
		which = "-H -S"
	}
	script := fmt.Sprintf("for l in 'n 256' 'c 0' 's 1024' 'l 64' 'i 10' 'u 200'; do ulimit %s -$l; done; exec %s run --rlimit nofile=4096 --rlimit core=unlimited -- /usr/bin/python3 -c %q",
		which, bin, fmt.Sprintf(showLimit, "NOFILE CORE STACK MEMLOCK SIGPENDING"))
	hostShell(t, script).want(t, 0, "(4096, 4096) (-1, -1) (16777216, -1) (8388608, 8388608) (4096, 4096)\n")
}

// What each limit does.
func TestRlimitEffect(t *testing.T) {
	for _, c := range []struct {
		flag, script string
		code         int
		reason, out  string
	}{
		{"nofile=16", "python3 -c 'import os; [os.dup(0) for i in range(100)]' 2>&1 | tail -n 1", 0, "exited", "OSError: [Errno 24] Too many open files\n"},
		{"fsize=1m", "exec head -c 2m /dev/zero >f", 153, "signalled", ""},
		{"cpu=1:5", "while :; do :; done", 152, "signalled", ""},
		{"as=64m", "python3 -c 'bytearray(100<<20)' 2>&1 | tail -n 1", 0, "exited", "MemoryError\n"},
		{"stack=unlimited", "ulimit -s", 0, "exited", "unlimited\n"},
		{"core=unlimited", "cd /tmp; sh -c 'kill -SEGV $$'; echo $?", 0, "exited", "139\n"},
	} {
		t.Run(c.flag, func(t *testing.T) {
			t.Parallel()
			r, o := shResult(t, c.script, "--rlimit", c.flag)
			if o.code != c.code || r.Reason != c.reason || r.Stdout != c.out {
				t.Errorf("exit code %d, %+v", o.code, r)
			}
		})
	}
}

func TestRlimitBad(t *testing.T) {
	type test struct{ flag, says string }
	for _, c := range fewer(3, []test{
		{"nofile", "nofile"}, {"nofile=", "nofile"}, {"files=1", "files"}, {"nofile=2:1", "nofile"}, {"nofile=-5", "-5"},
		{"nofile=many", "many"}, {"nofile=99999999999", "more than this host allows"}, {"fsize=1q", "1q"},
	}) {
		husk(t, "run", "--rlimit", c.flag, "--", "true").wantError(t, "rlimit", c.says)
	}
}
