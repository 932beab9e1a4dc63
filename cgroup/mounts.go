package cgroup

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a line of /proc/self/mountinfo that shows a cgroup hierarchy.
type mount struct {
	device   string // "major:minor", which names the hierarchy
	root     string // the group that is shown, "/" for all of the hierarchy
	point    string
	v2       bool
	readOnly bool
	options  []string // of the hierarchy; on v1 the controllers are among them
}

// parseMounts reads the cgroup mounts of a mountinfo file, whose format is in proc_pid_mountinfo(5).
func parseMounts(r io.Reader) ([]mount, error) {
	var mounts []mount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // an overlay's options may be long
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 6 || len(r) < 3 || r[0] != "cgroup" && r[0] != "cgroup2" {
			continue
		}
		options := strings.Split(r[2], ",")
		mounts = append(mounts, mount{
			device: l[2], root: unescape(l[3]), point: unescape(l[4]), v2: r[0] == "cgroup2",
			readOnly: slices.Contains(strings.Split(l[5], ","), "ro") || slices.Contains(options, "ro"),
			options:  options,
		})
	}
	return mounts, lines.Err()
}

// unescape undoes the kernel's octal writing of blanks and backslashes.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n := octal(s[i+1 : i+4]); n >= 0 {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func octal(s string) int {
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '7' {
			return -1
		}
		n = n<<3 | int(c-'0')
	}
	if n > 0xff {
		return -1
	}
	return n
}

// byPreference has the widest views first, and drops those from outside our cgroup namespace.
func byPreference(mounts []mount) []mount {
	list := slices.DeleteFunc(slices.Clone(mounts), func(m mount) bool { return strings.HasPrefix(m.root, "/..") })
	slices.SortStableFunc(list, func(a, b mount) int {
		if a.readOnly != b.readOnly {
			if b.readOnly {
				return -1
			}
			return 1
		}
		return strings.Count(strings.TrimSuffix(a.root, "/"), "/") - strings.Count(strings.TrimSuffix(b.root, "/"), "/")
	})
	return list
}

// hierarchy is a mounted tree of groups. The paths of groups in it are relative to root.
type hierarchy struct {
	mount
	root *os.File // an O_PATH descriptor of the mount point
}

// has says whether a v1 hierarchy has a controller.
func (h *hierarchy) has(name string) bool { return !h.v2 && slices.Contains(h.options, name) }

// openHierarchies opens each hierarchy once, through the best mount of it that can be reached.
func openHierarchies(mounts []mount) ([]*hierarchy, error) {
	var list []*hierarchy
	var first error
	opened := map[string]bool{}
	for _, m := range byPreference(mounts) {
		if opened[m.device] {
			continue
		}
		root, err := openMount(m)
		if err != nil && first == nil {
			first = err
		}
		if root != nil {
			opened[m.device] = true
			list = append(list, &hierarchy{m, root})
		}
	}
	if len(list) == 0 {
		return nil, first
	}
	return list, nil
}

// openMount gives nil when another mount hides this one.
func openMount(m mount) (*os.File, error) {
	f, err := os.OpenFile(m.point, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, os.NewSyscallError("fstat", err)
	}
	if device(st.Dev) != m.device {
		f.Close()
		return nil, nil
	}
	return f, nil
}
