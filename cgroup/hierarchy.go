package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is one mounted tree.
type hierarchy struct {
	mount       string
	v2          bool
	controllers []string // of a v1 hierarchy, as mounted; "name=systemd" for a named one
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// parseMounts reads the cgroup mounts from a mountinfo file (proc_pid_mountinfo(5)); the first mount of
// a hierarchy counts.
func parseMounts(r io.Reader) ([]hierarchy, error) {
	var list []hierarchy
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		before, after, ok := strings.Cut(scan.Text(), " - ")
		fields, fs := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(fs) < 3 {
			continue
		}
		h := hierarchy{mount: unescape(fields[4]), v2: fs[0] == "cgroup2"}
		if fs[0] == "cgroup" {
			h.controllers = controllersOf(fs[2])
		}
		if (h.v2 || len(h.controllers) > 0) && !slices.ContainsFunc(list, func(o hierarchy) bool {
			return o.v2 == h.v2 && slices.Equal(o.controllers, h.controllers)
		}) {
			list = append(list, h)
		}
	}
	return list, scan.Err()
}

// controllersOf drops from the super options what is not a controller.
func controllersOf(options string) []string {
	return slices.DeleteFunc(strings.Split(options, ","), func(o string) bool {
		return slices.Contains([]string{"rw", "ro", "xattr", "noprefix", "clone_children", "release_agent", "none", "seclabel"}, o) ||
			strings.HasPrefix(o, "release_agent=")
	})
}

// unescape undoes mountinfo's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func readMounts() ([]hierarchy, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find cgroup mounts: %w", err)
	}
	defer f.Close()
	return parseMounts(f)
}

// writeFile writes one value; the value is in the error. dir is unix.AT_FDCWD or a directory.
func writeFile(dir int, path, value string) error {
	fd, err := unix.Openat(dir, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	for {
		_, err = unix.Write(fd, []byte(value))
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write %q to %s: %w", value, path, err)
	}
	return nil
}

// readFile reads a small file into buf.
func readFile(dir int, path string, buf []byte) ([]byte, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return buf[:n], nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makeDir is mkdir that accepts what is there already; made says whether it was not.
func makeDir(path string) (made bool, err error) {
	err = os.Mkdir(path, 0o755)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if errors.Is(err, unix.EROFS) {
		return false, fmt.Errorf("%w: %s is mounted read-only: remount it read-write, or run husk where it is writable", ErrUnavailable, filepath.Dir(path))
	}
	if err != nil {
		return false, fmt.Errorf("make group: %w", err)
	}
	return true, nil
}
