package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostShare is how much of the host's memory and pids all sandboxes together may use.
const hostShare = 0.8

// evacuation is the group that processes are moved to which stand where limits are handed out.
const evacuation = "init"

// makeParent makes the group that holds all sandboxes, where we need it.
func (t *Tree) makeParent() error {
	fresh := map[*hierarchy]bool{}
	for _, h := range t.used(false) {
		made, err := t.makeParentIn(h)
		if err != nil {
			return fmt.Errorf("make group /%s in %s: %w", t.parent, h.point, err)
		}
		fresh[h] = made
	}
	if err := t.findSwapFile(); err != nil {
		return err
	}
	return t.limitHost()
}

func (t *Tree) makeParentIn(h *hierarchy) (bool, error) {
	made := false
	for dir := range ancestors(t.parent) {
		if dir != "." {
			fresh, err := ensureDir(h.root, dir)
			if err != nil {
				return false, err
			}
			made = fresh
		}
		if h.v2 && t.mode == Unified {
			if err := t.enable(dir, memory, pids, cpu); err != nil {
				return false, err
			}
		}
	}
	return made, nil
}

// ancestors are "." for the root, then each group on the way to p, then p.
func ancestors(p string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(".") {
			return
		}
		for i := range len(p) + 1 {
			if (i == len(p) || p[i] == '/') && !yield(p[:i]) {
				return
			}
		}
	}
}

// enable hands controllers out to the groups in dir of the v2 tree.
func (t *Tree) enable(dir string, controllers ...controller) error {
	file := path.Join(dir, "cgroup.subtree_control")
	text, err := readText(t.v2.root, file)
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range controllers {
		if !slices.Contains(strings.Fields(text), c.String()) {
			missing = append(missing, "+"+c.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	value := strings.Join(missing, " ")
	err = write(t.v2.root, file, value)
	if errors.Is(err, unix.EBUSY) && dir == "." {
		if err := t.evacuate(); err != nil {
			return err
		}
		err = write(t.v2.root, file, value)
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("hand out controllers: group /%s holds processes, which cgroup v2 does not allow: choose another parent: %w", dir, err)
	}
	return err
}

// evacuate moves the processes of a container's cgroup root to a group of their own. The host's own
// root may hold processes, so it is never there that this is needed; it has no cgroup.type.
func (t *Tree) evacuate() error {
	inContainer, err := exists(t.v2.root, "cgroup.type")
	if err != nil || !inContainer {
		return err
	}
	if _, err := ensureDir(t.v2.root, evacuation); err != nil {
		return err
	}
	for range 100 { // each time there may be new children of those not yet moved
		text, err := readText(t.v2.root, "cgroup.procs")
		if err != nil || strings.TrimSpace(text) == "" {
			return err
		}
		for pid := range strings.FieldsSeq(text) {
			if pid == "0" {
				return errors.New("move processes out of the cgroup root: it holds some of another pid namespace")
			}
			if err := write(t.v2.root, evacuation+"/cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move process %s out of the cgroup root: %w", pid, err)
			}
		}
	}
	return errors.New("move processes out of the cgroup root: it does not get empty")
}

// findSwapFile looks whether this kernel can limit swap.
func (t *Tree) findSwapFile() (err error) {
	t.swapFile, err = exists(t.of[memory].root, path.Join(t.parent, t.swapName()))
	return err
}

func (t *Tree) swapName() string {
	if t.mode == Unified {
		return swapMax
	}
	return memsw
}

// checkSwap: where swap cannot be limited there must be none.
func (t *Tree) checkSwap(l Limits) error {
	if l.Memory == 0 || l.AllowSwap || t.swapFile {
		return nil
	}
	text, err := os.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.Count(string(text), "\n") <= 1 { // a heading
		return nil
	}
	return &UnavailableError{What: t.swapName(), Where: t.of[memory].point, Err: err,
		Fix: "this host has swap that could not be limited: boot with swapaccount=1, or swapoff -a"}
}

// CoversSwap says whether memory limits cover swap here. Where they do not, one is an error unless
// Limits.AllowSwap is set.
func (t *Tree) CoversSwap() bool { return t.checkSwap(Limits{Memory: MinMemory}) == nil }

// limitHost gives the group of all sandboxes its limits, once: an administrator may change them.
func (t *Tree) limitHost() error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return os.NewSyscallError("sysinfo", err)
	}
	l := Limits{Memory: int64(float64(info.Totalram) * float64(info.Unit) * hostShare), PIDs: maxPIDs()}
	l.Memory -= l.Memory % int64(os.Getpagesize())
	for _, s := range l.settings(t.mode, t.swapFile) {
		file := path.Join(t.parent, s.file)
		var buf [32]byte
		now, err := read(t.of[s.in].root, file, buf[:])
		if err == nil && unlimited(now) {
			err = write(t.of[s.in].root, file, s.value)
		}
		if err != nil {
			return fmt.Errorf("limit all sandboxes: %w", err)
		}
	}
	return nil
}

// unlimited reads "max", or v1's number of bytes near the greatest.
func unlimited(value []byte) bool {
	text := strings.TrimSpace(string(value))
	n, err := strconv.ParseUint(text, 10, 64)
	return text == "max" || err == nil && n >= 1<<62
}

// maxPIDs is the share of the host's, or 0 where that cannot be read.
func maxPIDs() int64 {
	least := int64(0)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return int64(float64(least) * hostShare)
}
