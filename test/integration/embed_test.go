package integration

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// embedder is examples/embed, built as anybody would: beside this test where the suite was compiled on
// another machine, else with the go tool now.
func embedder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if built := filepath.Join(filepath.Dir(self), "embed"); isFile(built) {
		return built
	}
	if _, err := exec.LookPath("go"); err != nil {
		if inVM() {
			t.Fatal("the suite was built without examples/embed")
		}
		t.Skip("heavy: no go tool to build examples/embed with")
	}
	path := filepath.Join(t.TempDir(), "embed")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./examples/embed")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return path
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// TestEmbed: an ordinary program, dynamically linked, with init functions, goroutines and a child of its
// own, is not disturbed by husk in it.
func TestEmbed(t *testing.T) {
	path := embedder(t)
	if !isDynamic(t, path) {
		t.Errorf("%s is linked statically: not the ordinary case", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v, stdout %q, stderr %q", err, out.String(), errOut.String())
	}
	checkEmbedOutput(t, out.String())
	if errOut.Len() > 0 {
		t.Errorf("stderr %q", errOut.String())
	}
	if left := hostProcesses(t, "sleep\x004242"); left != nil {
		t.Errorf("left of the command that was given up: %q", left)
	}
	if o := husk(t, "ps", "-a"); strings.Contains(o.stdout, "embed-example") {
		t.Errorf("its sandbox is still there:\n%s", o.stdout)
	}
}

// checkEmbedOutput: every line once, the eight executions in any order.
func checkEmbedOutput(t *testing.T, text string) {
	t.Helper()
	counts := regexp.MustCompile(`(?m)^descriptors and threads: (\d+) (\d+)\n`)
	found := counts.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no counts in %q", text)
	}
	descriptors, _ := strconv.Atoi(found[1])
	threads, _ := strconv.Atoi(found[2])
	// it has 3 of its own, a pidfd, the cgroup hierarchies, and a connection for each execution at once
	if descriptors < 4 || descriptors > 64 || threads < 1 || threads > 48 {
		t.Errorf("%d descriptors, %d threads", descriptors, threads)
	}
	lines := strings.Split(strings.TrimSpace(counts.ReplaceAllString(text, "")), "\n")
	want := []string{"library: init", "main: init", "given up: cancelled, SIGKILL", "our own child: exit code 7"}
	for i := range 8 {
		want = append(want, "execution "+strconv.Itoa(i)+": exited, exit code 0: "+strconv.Itoa(7*i))
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("it printed\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// isDynamic: whether a program names an interpreter, the dynamic linker.
func isDynamic(t *testing.T, path string) bool {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
