package cgroup

import (
	"strings"
	"testing"
)

func TestMounts(t *testing.T) {
	text := `22 1 0:21 / /proc rw - proc proc rw
31 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
34 22 0:31 /docker/x /mnt/a\040b ro,nosuid shared:3 master:1 - cgroup cgroup rw,memory
35 22 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:3 - cgroup cgroup rw,seclabel,memory
36 22 0:32 /../.. /x rw - cgroup cgroup rw,pids
40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
short - cgroup
`
	m, err := parseMounts(strings.NewReader(text))
	if err != nil || len(m) != 5 || m[1].point != "/mnt/a b" || !m[1].readOnly || !m[4].v2 {
		t.Fatalf("%+v %v", m, err)
	}
	p := byPreference(m)
	if len(p) != 4 || p[1].point != "/sys/fs/cgroup/memory" {
		t.Errorf("%+v", p)
	}
}

func TestValidate(t *testing.T) {
	for _, l := range []Limits{{Memory: 1}, {Memory: 4096}, {Memory: 1 << 20}, {Memory: -1}, {CPUs: 0.001}, {CPUs: -1}, {PIDs: -1}, {CPUSet: "a"}, {CPUSet: "3-1"}, {CPUSet: "1,"}} {
		if l.validate() == nil {
			t.Errorf("%+v accepted", l)
		}
	}
	if err := (Limits{Memory: 4 << 20, CPUs: 0.01, PIDs: 1, CPUSet: "0-1,3"}).validate(); err != nil {
		t.Error(err)
	}
}
