package integration

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func owner(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Uid, st.Gid)
}

func chmod(t *testing.T, path string, mode uint32) {
	t.Helper()
	if err := syscall.Chmod(path, mode); err != nil { // os.Chmod has its own idea of set-id bits
		t.Fatal(err)
	}
}

// ownedDir is a directory of the host that belongs to uid and gid.
func ownedDir(t *testing.T, uid, gid int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "owned")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostProcesses are those of the host whose command line contains text.
func hostProcesses(t *testing.T, text string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, line := range lines {
		// a process may end while we look
		if content, err := os.ReadFile(line); err == nil && strings.Contains(string(content), text) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}

// fields of lines such as "CapEff:\t0000000000000000".
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// unified is true where the memory controller is one of cgroup v2.
func unified(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	return err == nil && strings.Contains(string(text), "memory")
}

// safeBuffer may be written to by one goroutine and read by another.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
