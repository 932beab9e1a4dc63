package cgroup_test

import (
	"fmt"

	"github.com/husk-sandbox/husk/cgroup"
)

func ExampleLimits() {
	_, err := cgroup.Open("/..")
	fmt.Println(err)
	// Output: cgroup parent "/..": want a path of a group below the root
}
