package structure

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// foreign are words of the machines that the repository is made on. They are put together here so
// that this file does not hold them.
var foreign = []string{
	"/work" + "/main", "/work" + "/shared", "/work" + "/.", "../sha" + "red", "vm-" + "run", "VM_" + "RUN",
	"proxy.golang" + ".org", "deb.debian" + ".org", "registry.npm" + "js.org", "snapshot.debian" + ".org",
	"session of the " + "project",
}

var foreignPattern = regexp.MustCompile(`\b(farm-[a-z]+|issues (show|list)|/root/\.[a-z]+)\b`)

func TestNoForeignWords(t *testing.T) {
	for _, path := range files(t) {
		text := read(t, path)
		if strings.IndexByte(text, 0) >= 0 || path == "go.sum" {
			continue
		}
		for number, line := range strings.Split(text, "\n") {
			for _, word := range foreign {
				if strings.Contains(line, word) {
					t.Errorf("%s:%d names %q", path, number+1, word)
				}
			}
			if word := foreignPattern.FindString(line); word != "" && path != "test/structure/text_test.go" {
				t.Errorf("%s:%d names %q", path, number+1, word)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	type comments struct{ count, files int }
	found := map[string]*comments{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.file.Name.Name, "_test") || s.isTest() && !strings.HasPrefix(s.path, "test/") {
			continue
		}
		c := found[s.directory()]
		if c == nil {
			c = &comments{}
			found[s.directory()] = c
		}
		c.files++
		if s.file.Doc != nil && s.file.Doc.Text() != "" {
			c.count++
		}
	}
	for directory, c := range found {
		if c.count != 1 {
			t.Errorf("%s has %d package comments in %d files, not exactly one", directory, c.count, c.files)
		}
	}
}

// TestExamples: each package that others import shows how, in code that is run.
func TestExamples(t *testing.T) {
	examples := map[string]bool{}
	for _, s := range sources(t) {
		if _, known := examples[s.directory()]; !known {
			examples[s.directory()] = false
		}
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if ok && s.isTest() && strings.HasPrefix(f.Name.Name, "Example") {
				examples[s.directory()] = true
			}
		}
	}
	for _, directory := range append([]string{"runtime"}, leaves...) {
		if has, exists := examples[directory]; exists && !has {
			t.Errorf("%s has no Example", directory)
		}
	}
}

// TestErrorTexts: an error says what was done to what; that it went wrong is known.
func TestErrorTexts(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || s.isTest() {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			text, isText := call.Args[0].(*ast.BasicLit)
			if !ok || !isText || text.Kind != token.STRING || function.Sel.Name != "Errorf" && function.Sel.Name != "New" {
				return true
			}
			for _, word := range []string{"failed to", "error: ", "unable to"} {
				if strings.Contains(strings.ToLower(text.Value), word) {
					t.Errorf("%s: error text %s: name the action, not that it went wrong", s.at(call), text.Value)
				}
			}
			return true
		})
	}
}

func TestChangelog(t *testing.T) {
	if !strings.Contains(read(t, "CHANGELOG.md"), "\n## [Unreleased]\n") {
		t.Error("CHANGELOG.md has no section [Unreleased]")
	}
}
