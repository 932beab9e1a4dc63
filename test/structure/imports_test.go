package structure

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says what each package may import besides the standard library, as path prefixes. Paths
// that begin with "./" are this module's. A package that is not here may import sys and this module.
var allowed = map[string][]string{
	"cgroup": {
		"golang.org/x/sys", "github.com/containerd/cgroups/v3", "github.com/opencontainers/runtime-spec",
	},
	"seccomp": {
		"golang.org/x/sys", "golang.org/x/net/bpf", "github.com/moby/profiles/seccomp",
		"github.com/opencontainers/runtime-spec",
	},
	"rootfs": {
		"golang.org/x/sys", "github.com/cyphar/filepath-securejoin", "github.com/moby/sys",
	},
	"netpolicy": {"golang.org/x/sys"},
	"images":    {"golang.org/x/sys"},

	"runtime":                {"golang.org/x/sys", "./cgroup", "./seccomp", "./rootfs", "./netpolicy", "./images", "./runtime/internal"},
	"runtime/internal/guest": {"golang.org/x/sys"},
	"runtime/internal/engine": {
		"golang.org/x/sys", "github.com/opencontainers/runc", "github.com/opencontainers/cgroups",
		"github.com/opencontainers/runtime-spec", "github.com/moby/sys", "github.com/sirupsen/logrus",
		"./rootfs", "./runtime/internal/guest",
	},
	"cmd/husk": {
		"github.com/urfave/cli/v2", "github.com/xrash/smetrics", "golang.org/x/sys", "golang.org/x/term", "./runtime", "./netpolicy", "./images", "./cmd/husk",
	},
}

// leaves know one kernel idea each and nothing of one another.
var leaves = []string{"cgroup", "seccomp", "rootfs", "netpolicy", "images"}

// engineOnly may be imported by runtime/internal/engine and by nothing else of ours.
const engineOnly = "github.com/opencontainers/runc"

// goPackage is the part of `go list -json` that matters here.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func (p goPackage) directory() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func goPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-tags", "netgo,osusergo,runc_nocriu",
		"-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		list = append(list, p)
	}
}

func TestImports(t *testing.T) {
	for _, p := range goPackages(t) {
		may, ok := allowed[p.directory()]
		if !ok {
			may = []string{"golang.org/x/sys", "./"}
		}
		for _, path := range p.Imports {
			if !isStandard(path) && !matches(path, may) {
				t.Errorf("%s imports %s, which its line in the table does not allow", p.directory(), path)
			}
		}
	}
}

func TestLeavesStandAlone(t *testing.T) {
	for _, p := range goPackages(t) {
		if !slices.Contains(leaves, p.directory()) {
			continue
		}
		for _, path := range p.Deps {
			if path == module || strings.HasPrefix(path, module+"/") && !strings.HasPrefix(path, p.ImportPath+"/") {
				t.Errorf("leaf %s depends on %s", p.directory(), path)
			}
		}
	}
}

func TestOnlyTheEngineKnowsRunc(t *testing.T) {
	for _, p := range goPackages(t) {
		if p.directory() == "runtime/internal/engine" {
			continue
		}
		for _, path := range p.Imports {
			if path == engineOnly || strings.HasPrefix(path, engineOnly+"/") {
				t.Errorf("%s imports %s", p.directory(), path)
			}
		}
	}
}

// isStandard: the first element of any other module's path has a dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func matches(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		if own, ok := strings.CutPrefix(prefix, "./"); ok {
			prefix = strings.TrimSuffix(module+"/"+own, "/")
		}
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}
