package cgroup_test

import (
	"context"
	"fmt"
	"log"
	"os/exec"
	"syscall"
	"time"

	"github.com/husk-sandbox/husk/cgroup"
)

// On a host with pure cgroup v2; on a hybrid one the child also has to write "0" to each of Tasks.
func Example() {
	tree, err := cgroup.Open("")
	if err != nil {
		log.Fatal(err)
	}
	group, err := tree.Create("a1", cgroup.Limits{Memory: 256 << 20}, cgroup.Owner{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer group.Remove(ctx)

	leaf, err := group.Leaf("1", cgroup.Limits{Memory: 64 << 20, CPUs: 0.5, PIDs: 32})
	if err != nil {
		log.Print(err)
		return
	}
	defer leaf.Remove()
	cmd := exec.Command("sort", "/etc/services")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(leaf.Into().Fd())}
	ran := cmd.Run()
	usage, err := leaf.Usage()
	fmt.Println(ran, usage.MemoryPeak, err)
}

func ExampleOpen() {
	_, err := cgroup.Open("/..")
	fmt.Println(err)
	// Output: cgroup parent "/..": want a path of a group below the root
}
