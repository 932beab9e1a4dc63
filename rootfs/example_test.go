package rootfs_test

import (
	"fmt"

	"github.com/husk-sandbox/husk/rootfs"
)

func ExampleValidate() {
	err := rootfs.Validate(rootfs.Plan{
		Target: "/run/box/root", Dev: "/run/box/dev", Base: rootfs.BaseHost,
		IDs: rootfs.IDs{UIDBase: 100000, GIDBase: 100000, Size: 65536},
		Mounts: []rootfs.Mount{
			{Kind: rootfs.KindBind, Source: "/srv/data", Destination: "/data", ReadOnly: true},
			{Kind: rootfs.KindBind, Source: "/srv/data", Destination: "/proc/sys"},
			{Kind: rootfs.KindTmpfs, Destination: "/scratch"},
		},
	})
	fmt.Println(err)
	// Output:
	// mount on /proc/sys: /proc is the sandbox's own
	// tmpfs /scratch: needs a size and inodes above 0
}
