package cgroup

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMounts(t *testing.T) {
	long := "39 22 0:40 / /deep rw - overlay overlay rw,lowerdir=" + strings.Repeat("/layers/abcdef:", 20000)
	for _, c := range []struct {
		name  string
		lines string
		want  []string // points, the best first
	}{
		{"none", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", nil},
		{"unified", "30 22 0:27 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n", []string{"/sys/fs/cgroup"}},
		{"escapes", `31 30 0:28 / /a\040b\011c\012d\134e rw - cgroup2 cgroup2 rw` + "\n", []string{"/a b\tc\nd\\e"}},
		{"no escapes", `31 30 0:28 / /a\04\999\ rw - cgroup2 cgroup2 rw` + "\n", []string{`/a\04\999\`}},
		{"writable before read-only", `31 30 0:28 / /ro ro - cgroup2 cgroup2 rw
32 30 0:28 / /rw rw - cgroup2 cgroup2 rw
33 30 0:28 / /again rw - cgroup2 cgroup2 rw
34 30 0:28 / /ro2 rw - cgroup2 cgroup2 ro
`, []string{"/rw", "/again", "/ro", "/ro2"}},
		{"whole before part", `31 30 0:28 /part/of /p rw - cgroup cgroup rw,pids
32 30 0:28 / /whole rw - cgroup cgroup rw,pids
33 30 0:28 /part /q rw - cgroup cgroup rw,pids
`, []string{"/whole", "/q", "/p"}},
		{"outside the cgroup namespace", `31 30 0:28 /../.. /out rw - cgroup2 cgroup2 rw
32 31 0:28 / /in ro - cgroup2 cgroup2 rw
`, []string{"/in"}},
		{"a long line", long + "\n40 22 0:27 / /c rw - cgroup2 cgroup2 rw\n", []string{"/c"}},
		{"cut off", "31 30 0:28 / /x rw - cgroup2\n32 30\n\n - cgroup cgroup cpu\n", nil},
	} {
		mounts, err := parseMounts(strings.NewReader(c.lines))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []string
		for _, m := range byPreference(mounts) {
			got = append(got, m.point)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// parsed gives the hierarchies of mountinfo lines; they are not opened.
func parsed(t *testing.T, lines string) []*hierarchy {
	t.Helper()
	mounts, err := parseMounts(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	var list []*hierarchy
	for _, m := range mounts {
		list = append(list, &hierarchy{mount: m})
	}
	return list
}

const comounted = `31 30 0:28 / /u rw - cgroup2 cgroup2 rw
32 30 0:29 / /n rw - cgroup cgroup rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd
33 30 0:30 / /c rw - cgroup cgroup rw,seclabel,cpu,cpuacct
34 30 0:31 / /m rw - cgroup cgroup rw,memory,pids
35 30 0:32 / /s rw - cgroup cgroup rw,cpuset,clone_children
`

func TestAssignHybrid(t *testing.T) {
	tree := Tree{all: parsed(t, comounted)}
	tree.v2 = tree.all[0]
	if err := tree.assign([]string{"hugetlb"}); err != nil || tree.mode != Hybrid {
		t.Fatalf("mode %v, %v", tree.mode, err)
	}
	points := func(list []*hierarchy) (points []string) {
		for _, h := range list {
			points = append(points, h.point)
		}
		return points
	}
	if got := points(tree.of[:]); !slices.Equal(got, []string{"/m", "/m", "/c", "/s"}) {
		t.Errorf("memory, pids, cpu, cpuset are in %q", got)
	}
	if got := points(tree.used(false)); !slices.Equal(got, []string{"/u", "/m", "/c"}) {
		t.Errorf("used are %q", got)
	}
	if got := points(tree.used(true)); !slices.Equal(got, []string{"/u", "/m", "/c", "/s"}) {
		t.Errorf("used with CPU sets are %q", got)
	}
	if got := tree.ViewDirs(); !slices.Equal(got, []string{"memory,pids", "cpu,cpuacct", "cpuset"}) {
		t.Errorf("view of %q", got)
	}
}

func TestAssignMissing(t *testing.T) {
	for _, c := range []struct{ without, v2, word string }{
		{"/m", "", "memory, pids controller"}, {"/c", "", "cpu controller"},
		// some of v1 and some of v2 is nothing that we can use
		{"/m", "memory pids", "memory, pids controller"},
	} {
		lines := slices.DeleteFunc(strings.SplitAfter(comounted, "\n"), func(l string) bool { return strings.Contains(l, c.without+" ") })
		tree := Tree{all: parsed(t, strings.Join(lines, ""))}
		tree.v2 = tree.all[0]
		checkUnavailable(t, tree.assign(strings.Fields(c.v2)), "no "+c.word, "mount it")
	}
	tree := Tree{all: parsed(t, comounted)[:1]}
	tree.v2 = tree.all[0]
	checkUnavailable(t, tree.assign([]string{"cpu", "pids", "io"}), "no memory controller at /u", "cgroup_enable=memory")
	if err := tree.assign([]string{"cpu", "pids", "memory"}); err != nil || tree.mode != Unified || tree.of[cpuset] != nil {
		t.Errorf("without cpuset: %v, mode %v", err, tree.mode)
	}
	checkUnavailable(t, (&Group{tree: &tree}).joinCPUSets(), "no cpuset controller")
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "0", "4775e0292676", "a-b_c.d", strings.Repeat("x", 64)} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "-a", "A", "a\x00", "ä", " ", strings.Repeat("x", 65)} {
		checkError(t, checkName(name), "group name")
	}
}
