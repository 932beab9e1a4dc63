package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Executable is the guest's program in a sealed memfd. The caller must Close it.
func Executable() (*os.File, error) {
	// MFD_EXEC is new in 6.3 and says what older kernels take for granted.
	f, err := sealed("husk", program, unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		f, err = sealed("husk", program, 0)
	}
	if errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("memfd for the guest: %w (sysctl vm.memfd_noexec=2 forbids it: set it to 1 or 0)", err)
	}
	return f, err
}

// sealed is an anonymous file that nobody can change any more.
func sealed(name string, content []byte, flags int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flags)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(content); err != nil {
		f.Close()
		return nil, fmt.Errorf("write memfd: %w", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal memfd: %w", err)
	}
	return f, nil
}
