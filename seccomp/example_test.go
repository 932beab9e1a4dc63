package seccomp_test

import (
	"fmt"

	"github.com/husk-sandbox/husk/seccomp"
)

func Example() {
	// A service that must not change file modes, on top of what is not there for anybody.
	profile, err := seccomp.Parse([]byte(`{
		"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["chmod", "fchmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := profile.Compile(seccomp.Options{Arch: "amd64"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(program.Filter)/8, "instructions; 90 is", seccomp.SyscallName("amd64", 90))

	_, err = seccomp.Parse([]byte(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["chmood"], "action": "SCMP_ACT_ERRNO"}]}`))
	fmt.Println(err)
	// Output:
	// 14 instructions; 90 is chmod
	// parse seccomp profile: rule 0 (chmood): system call "chmood" does not exist on any architecture
}
