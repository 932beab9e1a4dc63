package runtime

import (
	"os"

	"golang.org/x/sys/unix"
)

// faultEnv names a point at which a process of ours kills itself, for the tests that prove that
// nothing is left behind. It has no effect unless a program sets it for itself.
const faultEnv = "HUSK_FAULT"

// fault is such a point.
func fault(point string) {
	if os.Getenv(faultEnv) == point {
		_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
		select {}
	}
}
