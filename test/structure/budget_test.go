package structure

import (
	"go/ast"
	"strings"
	"testing"
)

// The budgets. Tests have none but the file's: a table of cases may be long.
const (
	maxFunctionLines = 60
	maxFileLines     = 500
	maxParameters    = 4 // a leading context does not count
	maxMethods       = 3
	maxGuestLines    = 700 // guest.c, which is read whole by whoever checks the sandbox
	maxGuestColumns  = 100 // with a tab of four, as .editorconfig says for C
)

// longFunctions may be longer, each for its reason. "directory.Function" or "directory.Type.Method".
var longFunctions = map[string]string{}

// wideFunctions may take more parameters, each for its reason.
var wideFunctions = map[string]string{
	"cmd/husk.run": "context, arguments and the three streams of the process: what main hands over once",
}

// wideInterfaces may have more methods, each for its reason.
var wideInterfaces = map[string]string{}

func TestFunctionBudget(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := s.directory() + "." + functionName(f)
			if n := s.lines(f); n > maxFunctionLines && longFunctions[name] == "" {
				t.Errorf("%s: %s has %d lines, more than %d", s.at(f), name, n, maxFunctionLines)
			}
			if n := parameters(f.Type); n > maxParameters && wideFunctions[name] == "" {
				t.Errorf("%s: %s takes %d parameters, more than %d", s.at(f), name, n, maxParameters)
			}
		}
	}
}

func TestFileBudget(t *testing.T) {
	for _, s := range sources(t) {
		if n := s.set.File(s.file.Pos()).LineCount(); n > maxFileLines {
			t.Errorf("%s has %d lines, more than %d", s.path, n, maxFileLines)
		}
	}
}

func TestInterfaceBudget(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			i, ok := spec.Type.(*ast.InterfaceType)
			name := s.directory() + "." + spec.Name.Name
			if ok && len(i.Methods.List) > maxMethods && wideInterfaces[name] == "" {
				t.Errorf("%s: %s has %d methods, more than %d", s.at(i), name, len(i.Methods.List), maxMethods)
			}
			return true
		})
	}
}

func TestGuestBudget(t *testing.T) {
	for _, path := range files(t) {
		if !strings.HasPrefix(path, "runtime/internal/guest/src/") {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(read(t, path), "\n"), "\n")
		if n := codeLines(lines); n > maxGuestLines {
			t.Errorf("%s has %d lines of code, more than %d", path, n, maxGuestLines)
		}
		for i, line := range lines {
			if n := len(strings.ReplaceAll(line, "\t", "    ")); n > maxGuestColumns {
				t.Errorf("%s:%d has %d columns, more than %d", path, i+1, n, maxGuestColumns)
			}
		}
	}
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if identifier, ok := receiver.(*ast.Ident); ok {
		return identifier.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// parameters counts names, and an unnamed parameter as one; a leading context is free.
func parameters(f *ast.FuncType) int {
	count := 0
	for i, field := range f.Params.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && i == 0 && selector.Sel.Name == "Context" {
			continue
		}
		count += max(1, len(field.Names))
	}
	return count
}

// codeLines counts what is neither blank nor a comment: the budget is for what has to be trusted, and
// must not be met by leaving out explanations.
func codeLines(lines []string) int {
	n := 0
	for _, line := range lines {
		t := strings.TrimSpace(line)
		if t != "" && !strings.HasPrefix(t, "/*") && !strings.HasPrefix(t, "*") {
			n++
		}
	}
	return n
}
