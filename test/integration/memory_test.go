package integration

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

const hog = "x=bytearray(500<<20)"

// C1: an out-of-memory kill is seen whoever was the victim, and a SIGKILL without one is not taken for it.
func TestMemory(t *testing.T) {
	id := create(t, "--memory", "64m")
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		reason string
		stdout string
		oom    bool
	}{
		{"child", []string{"sh", "-c", "python3 -c '" + hog + "'; echo parent=$?; exit 0"}, 0, "exited", "parent=137\n", true},
		{"main process", []string{"python3", "-c", hog}, 137, "oom", "", true},
		{"grandchild", []string{"sh", "-c", "(setsid python3 -c '" + hog + "'; echo $?); exit 3"}, 3, "exited", "137\n", true},
		{"kill -9 only", []string{"sh", "-c", "kill -9 $$"}, 137, "signalled", "", false},
		{"below the limit", []string{"python3", "-c", "x=bytearray(30<<20); print(len(x))"}, 0, "exited", "31457280\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range max(rounds(50)/10, 1) {
				o := husk(t, append([]string{"exec", "--json", id, "--"}, c.args...)...)
				r := decode(t, o)
				if o.code != c.code || r.Reason != c.reason || r.Stdout != c.stdout {
					t.Fatalf("exit code %d, %+v", o.code, r)
				}
				if r.OOMKills == nil || (*r.OOMKills > 0) != c.oom {
					t.Fatalf("oom_kills %v, want some: %v", r.OOMKills, c.oom)
				}
				if r.MemoryPeak != nil && (*r.MemoryPeak > 64<<20 || c.oom && *r.MemoryPeak < 60<<20) {
					t.Fatalf("memory_peak_bytes %d", *r.MemoryPeak)
				}
			}
		})
	}
}

// Out of memory is said to people too.
func TestMemoryNotice(t *testing.T) {
	o := husk(t, "run", "--memory", "64m", "--", "python3", "-c", hog)
	if o.code != 137 || !strings.Contains(o.stderr, "husk: out of memory") || !strings.Contains(o.stderr, "64MiB") {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
}

// --oom-kill group: one victim takes the whole execution along, and the reason says so.
func TestMemoryGroup(t *testing.T) {
	mark := newMark(t)
	r, o := shResult(t, "sleep 300 & python3 -c '"+hog+"'; echo parent=$?; exit 0",
		"--memory", "64m", "--oom-kill", "group", "-e", "MARK="+mark)
	if o.code != 137 || r.Reason != "oom" || r.Stdout != "" || r.OOMKills == nil || *r.OOMKills < 1 {
		t.Errorf("exit code %d, %+v", o.code, r)
	}
	wantNothingLeft(t, mark, r.Sandbox)
}

// Files on the sandbox's memory file systems count: a program that fills them is stopped by their size
// or by the memory limit, and the sandbox goes on.
func TestMemoryOfFiles(t *testing.T) {
	id := create(t, "--memory", "64m", "--tmpfs", "/big:size=1g")
	r := decode(t, husk(t, "exec", "--json", id, "--", "sh", "-c", "head -c 500m /dev/zero >/big/f; echo $?"))
	// what the files hold stays taken after the first victim, so that the shell may be the second
	if r.Stdout != "137\n" && r.Reason != "oom" || r.OOMKills == nil || *r.OOMKills < 1 {
		t.Errorf("%+v", r)
	}
	husk(t, "exec", id, "--", "echo", "usable").want(t, 0, "usable\n")
}

// C3: the limit is the limit of memory and swap together.
func TestMemorySwap(t *testing.T) {
	id, mark := create(t, "--memory", "64m"), newMark(t)
	begin(t, nil, "exec", "-e", "MARK="+mark, id, "--", "sleep", "300")
	eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) > 0 })
	if got := groupFile(t, id, "memory.max", "memory", "memory.limit_in_bytes"); got != "67108864" {
		t.Errorf("memory limit on the host: %q", got)
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil {
		t.Fatal(err)
	}
	noSwap := bytes.Count(swaps, []byte("\n")) <= 1
	got := groupFile(t, id, "memory.swap.max", "memory", "memory.memsw.limit_in_bytes")
	if want := map[bool]string{true: "0", false: "67108864"}[pureV2(t)]; got != want && !(got == "" && noSwap) {
		t.Errorf("swap limit on the host: %q, want %q", got, want)
	}
}

// C9: a limit that is too small is refused with the minimum, or works; a forgotten unit is refused.
func TestMemorySizes(t *testing.T) {
	type test struct{ size, says string }
	for _, c := range fewer(4, []test{
		{"64", "unit"},
		{"1m", "at least 8MiB"},
		{"8m", ""},
		{"unlimited", ""},
		{"1", "unit"},
		{"4096", "unit"},
		{"1b", "at least 8MiB"},
		{"4096b", "at least 8MiB"},
		{"4m", "at least 8MiB"},
		{"6MiB", "at least 8MiB"},
		{"8388607", "at least 8MiB"},
		{"-1", "-1"},
		{"0", "unlimited"},
		{"64x", "64x"},
		{"lots", "lots"},
		{"", ""},
		{"64m", ""},
		{"64MiB", ""},
		{"0.25g", ""},
		{"1e9", "1e9"},
	}) {

		t.Run(c.size, func(t *testing.T) {
			o := husk(t, "run", "--memory", c.size, "--", "echo", "ran")
			if c.says == "" {
				o.want(t, 0, "ran\n")
				return
			}
			o.wantError(t, "memory", c.says)
		})
	}
}
