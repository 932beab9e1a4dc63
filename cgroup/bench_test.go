package cgroup_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/cgroup"
)

func BenchmarkLeaf(b *testing.B) {
	g := create(b, "bench", cgroup.Limits{Memory: 512 << 20, CPUs: 1, PIDs: 300})
	for i := 0; b.Loop(); i++ {
		f := leaf(b, g, "l", cgroup.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 128})
		if _, err := f.Usage(); err != nil {
			b.Fatal(err)
		}
		if err := f.Remove(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	create(b, "bench2", cgroup.Limits{})
	var dirs []string
	v2, v1, _ := mounts()
	dirs = append(dirs, v2+parent()+"/bench2/x/l")
	for _, c := range strings.Fields(os.Getenv("BARE")) {
		if v1[c] != "" {
			dirs = append(dirs, v1[c]+parent()+"/bench2/x/l")
		}
	}
	for b.Loop() {
		for _, d := range dirs {
			if err := syscall.Mkdir(d, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		for _, d := range dirs {
			syscall.Rmdir(d)
		}
	}
}

func BenchmarkInto(b *testing.B) {
	g := create(b, "bench3", cgroup.Limits{})
	leaf(b, g, "l", cgroup.Limits{})
	v2, _, _ := mounts()
	x, _ := os.Open(v2 + parent() + "/bench3/x")
	b.Run("open_tree", func(b *testing.B) {
		for b.Loop() {
			fd, err := unix.OpenTree(int(x.Fd()), "l", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				b.Fatal(err)
			}
			unix.Close(fd)
		}
	})
	b.Run("openat", func(b *testing.B) {
		for b.Loop() {
			fd, _ := unix.Openat(int(x.Fd()), "l", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			unix.Close(fd)
		}
	})
}
