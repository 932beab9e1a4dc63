package rootfs

import (
	"os"
	"testing"
)

// A set-group-id directory of root's group, deeper in a source, must not make files of that group.
func TestRootBindDeepGroupRoot(t *testing.T) {
	private(t)
	dir := userDir(t, 12345, 12345)
	for _, err := range []error{os.Mkdir(dir+"/d", 0o755), os.Chown(dir+"/d", 12345, 0), os.Chmod(dir+"/d", 0o775|os.ModeSetgid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := testPlan(t)
	p.Mounts = []Mount{{Kind: KindBind, Source: dir, Destination: "/data"}}
	assemble(t, p)
	out, err := tryInside(p, 1000, "/bin/sh", "-c", "echo x >/data/d/f")
	if err == nil {
		t.Errorf("wrote: %q", out)
	}
	entries, err := os.ReadDir(dir + "/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s has group %d on the host", e.Name(), statOf(t, dir+"/d/"+e.Name()).Gid)
	}
}
