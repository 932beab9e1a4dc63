package rootfs

import (
	"os"
	"testing"
)

// BenchmarkAssemble is a root as a sandbox has it by default; with one writable bind in /bind.
func BenchmarkAssemble(b *testing.B) {
	points := []string{"/proc", "/tmp", "/var/tmp", "/run", "/dev/shm", "/home/sandbox", "/dev/pts", "/sys/fs/cgroup"}
	workspace := Mount{Kind: KindTmpfs, Destination: "/workspace", Size: 64 << 20, Inodes: 1024, Mode: 0o755, UID: 1000, GID: 1000}
	b.Run("plain", func(b *testing.B) { benchmarkAssemble(b, []Mount{workspace}, points) })
	b.Run("bind", func(b *testing.B) {
		requireRoot(b)
		dir := openDir(b)
		if err := os.Chown(dir, 12345, 12345); err != nil {
			b.Fatal(err)
		}
		bind := Mount{Kind: KindBind, Source: dir, Destination: "/workspace"}
		benchmarkAssemble(b, []Mount{bind, {Kind: KindBind, Source: dir, Destination: "/data"}}, points)
	})
}

func benchmarkAssemble(b *testing.B, mounts []Mount, points []string) {
	private(b)
	p := testPlan(b)
	p.Mounts, p.MountPoints = mounts, points
	for b.Loop() {
		if _, err := Assemble(p); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		unmount(p)
		b.StartTimer()
	}
}
