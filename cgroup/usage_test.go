package cgroup

import "testing"

func TestField(t *testing.T) {
	text := []byte("usage_usec 12\nuser_usec 7\nnr_bursts x\noom_kill_disable 0\noom_kill 3")
	for name, want := range map[string]int64{"usage_usec": 12, "user_usec": 7, "oom_kill": 3} {
		if got, ok := field(text, name); !ok || got != want {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	for _, name := range []string{"usec", "nr_bursts", "oom", "missing", ""} {
		if got, ok := field(text, name); ok {
			t.Errorf("%q is %d, want none", name, got)
		}
	}
	for text, want := range map[string]int64{"42\n": 42, "0": 0, "9223372036854775807\n": -1, "max\n": -1, "": -1, "-1\n": -1, "1 2\n": -1} {
		got, ok := field([]byte(text), "")
		if want == -1 && ok && got < 1<<62 || want >= 0 && (!ok || got != want) {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
}
