package integration

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// probeProgram is testdata/*.c, compiled on first use.
var probeProgram struct {
	once sync.Once
	text []byte
	err  error
}

func compileProbe(t *testing.T) []byte {
	t.Helper()
	p := &probeProgram
	p.once.Do(func() {
		out := filepath.Join(t.TempDir(), "probe")
		sources, _ := filepath.Glob("testdata/*.c")
		args := append([]string{"-static", "-O1", "-pthread", "-o", out}, sources...)
		if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Errorf("compile the probe: %v: %s", err, text)
			p.err = err
			return
		}
		p.text, p.err = os.ReadFile(out)
	})
	if p.err != nil {
		t.Fatalf("no probe: %v", p.err)
	}
	return p.text
}

// canaryText is what the file canary holds, and must still hold afterwards.
const canaryText = "canary that nobody may change\n"

// probeDir is a directory of the host's root with the probe and a canary, to be bound on /probe.
func probeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "probe"), compileProbe(t), 0o755)
	writeFile(t, filepath.Join(dir, "canary"), []byte(canaryText), 0o644)
	return dir
}

// writeFile writes with exactly this mode, set-id bits included.
func writeFile(t *testing.T, path string, text []byte, mode uint32) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
}

// findings are what a probe printed: the results of each attempt, joined by commas if there are more.
type findings map[string]string

// attack runs one group of the probe in a fresh sandbox and checks that the canary is as before.
func attack(t *testing.T, group string, flags ...string) findings {
	t.Helper()
	dir := probeDir(t)
	before := treeOf(t, dir)
	o := husk(t, append(append([]string{"run", "--bind", dir + ":/probe"}, flags...), "--", "/probe/probe", group)...)
	if o.code != 0 || o.stderr != "" {
		t.Errorf("probe %s: exit code %d, stderr %q", group, o.code, o.stderr)
	}
	sameTree(t, before, treeOf(t, dir))
	if slices.Contains(flags, "--json") {
		return parseFindings(t, decode(t, o).Stdout)
	}
	return parseFindings(t, o.stdout)
}

func parseFindings(t *testing.T, text string) findings {
	t.Helper()
	f := findings{}
	for line := range strings.Lines(text) {
		what, result, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Errorf("odd line %q of the probe", line)
		}
		if f[what] != "" {
			result = f[what] + "," + result
		}
		f[what] = result
	}
	if len(f) == 0 {
		t.Errorf("the probe said nothing: %q", text)
	}
	return f
}

// refused: each attempt ended with one of these; exceptions are compared by the tests themselves.
func (f findings) refused(t *testing.T, results ...string) {
	t.Helper()
	for what, text := range f {
		for _, result := range strings.Split(text, ",") {
			if !slices.Contains(results, result) {
				t.Errorf("%s: %s, want one of %v", what, result, results)
			}
		}
	}
}

// take removes and gives a finding.
func (f findings) take(what string) string {
	result := f[what]
	delete(f, what)
	return result
}

// treeOf is mode, owner and content of everything below dir.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text, err := describe(path)
		tree[path] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func describe(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	text := info.Mode().String() + " " + owner(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		return text + " " + link, err
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		return text + " " + string(sum[:]), err
	}
	return text, nil
}

func sameTree(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, text := range before {
		if after[path] != text {
			t.Errorf("on the host, %s was %q and is %q", path, text, after[path])
		}
	}
	for path, text := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("on the host, %s appeared: %q", path, text)
		}
	}
}
