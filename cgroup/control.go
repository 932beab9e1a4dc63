package cgroup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The calls below take a directory and a path in it, and make no more system calls than it takes.

func device(dev uint64) string {
	return strconv.FormatUint(uint64(unix.Major(dev)), 10) + ":" + strconv.FormatUint(uint64(unix.Minor(dev)), 10)
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// open gives a bare descriptor, for those who close it before they return.
func open(dir *os.File, path string, flags int) (int, error) {
	fd := -1
	err := retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), path, flags|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

func openFile(dir *os.File, path string, flags int) (*os.File, error) {
	fd, err := open(dir, path, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// write puts a value into a control file in one call, as the kernel wants it.
func write(dir *os.File, path, value string) error {
	fd, err := open(dir, path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = retry(func() error {
		_, err := unix.Write(fd, []byte(value))
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "write " + value + " to", Path: path, Err: err}
	}
	return nil
}

// read fills buf from a control file and returns what it got.
func read(dir *os.File, path string, buf []byte) ([]byte, error) {
	fd, err := open(dir, path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return pread(fd, path, buf)
}

func pread(fd int, path string, buf []byte) ([]byte, error) {
	n := 0
	err := retry(func() (err error) {
		n, err = unix.Pread(fd, buf, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return buf[:n], nil
}

// readText is read for what is longer or rarer.
func readText(dir *os.File, path string) (string, error) {
	f, err := openFile(dir, path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// makeDir sets the mode apart: under a strict umask of the caller the sandbox's user could not mount its
// view of a v2 group, for which the kernel walks down to it as that user (EACCES).
func makeDir(dir *os.File, path string) error {
	if err := retry(func() error { return unix.Mkdirat(int(dir.Fd()), path, 0o755) }); err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	if err := retry(func() error { return unix.Fchmodat(int(dir.Fd()), path, 0o755, 0) }); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// ensureDir is makeDir that says whether it made one.
func ensureDir(dir *os.File, path string) (bool, error) {
	err := makeDir(dir, path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func removeDir(dir *os.File, path string) error {
	if err := retry(func() error { return unix.Unlinkat(int(dir.Fd()), path, unix.AT_REMOVEDIR) }); err != nil {
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

func exists(dir *os.File, path string) (bool, error) {
	err := retry(func() error { return unix.Faccessat(int(dir.Fd()), path, unix.F_OK, 0) })
	if err == nil || err == unix.ENOENT {
		return err == nil, nil
	}
	return false, &fs.PathError{Op: "access", Path: path, Err: err}
}

// children are the directories in a group; none when the group is not there.
func children(dir *os.File, path string) ([]string, error) {
	f, err := openFile(dir, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
