// Package structure checks what the compiler does not: which package may import which, how long a
// function may be, that nothing runs at import, and that the repository names no machine.
//
// The tables in this package are the rules; an exception is a line there with its reason.
package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	top    = "../.."
	module = "github.com/husk-sandbox/husk"
)

// source is one Go file of the repository.
type source struct {
	path string // from the top, with slashes
	file *ast.File
	set  *token.FileSet
}

func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) directory() string { return filepath.Dir(s.path) }

// at is where a node is, for messages.
func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

// lines is how many lines a node takes.
func (s source) lines(n ast.Node) int {
	return s.set.Position(n.End()).Line - s.set.Position(n.Pos()).Line + 1
}

// files lists the repository's own files, from the top: no build results, no test data, no history.
func files(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch entry.Name() {
		case ".git", "bin", "tmp", "testdata":
			if entry.IsDir() {
				return filepath.SkipDir
			}
		}
		if entry.Type().IsRegular() {
			relative, err := filepath.Rel(top, path)
			list = append(list, filepath.ToSlash(relative))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sources parses the Go files that people wrote.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	set := token.NewFileSet()
	for _, path := range files(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(top, path), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !ast.IsGenerated(file) {
			list = append(list, source{path, file, set})
		}
	}
	if len(list) == 0 {
		t.Fatal("no Go file found: the walk is broken")
	}
	return list
}

// read is the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
