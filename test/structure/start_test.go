package structure

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The program starts anew for every call, so an import-time statement is paid every time.

// initFunctions may exist, each for its reason. "directory" → why.
var initFunctions = map[string]string{
	"runtime/internal/engine": "the engine's child must take over before main's other packages start",
}

// computed may be a package variable whose value is a call, each for its reason. "directory.name".
var computed = map[string]string{}

// free calls cost nothing worth naming at start: they allocate one small value, or none.
var free = []string{"errors.New", "len", "cap", "min", "max", "string", "byte", "rune", "int", "int32", "int64",
	"uint8", "uint16", "uint32", "uint64", "uintptr", "float64", "time.Duration", "unsafe.Sizeof", "new", "make"}

// exempt are programs that show what an embedding program may do; husk never imports them.
func exempt(path string) bool { return strings.HasPrefix(path, "examples/") }

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name != "init" || s.isTest() || exempt(s.path) {
				continue
			}
			if initFunctions[s.directory()] == "" {
				t.Errorf("%s: init function", s.at(f))
			}
		}
	}
}

func TestNoComputedVariables(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || exempt(s.path) {
			continue
		}
		for _, declaration := range s.file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.VAR {
				checkVariables(t, s, d)
			}
		}
	}
}

func checkVariables(t *testing.T, s source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		name := v.Names[0].Name
		if name == "_" || computed[s.directory()+"."+name] != "" { // a blank one is for the compiler
			continue
		}
		for _, value := range v.Values {
			if call := firstCall(value); call != nil {
				t.Errorf("%s: variable %s is computed at import", s.at(call), name)
			}
		}
	}
}

// firstCall finds a call that an expression makes when it is evaluated.
func firstCall(e ast.Expr) *ast.CallExpr {
	var found *ast.CallExpr
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // runs later, if at all
		case *ast.CallExpr:
			if !isFree(n.Fun) && found == nil {
				found = n
			}
		}
		return true
	})
	return found
}

func isFree(function ast.Expr) bool {
	switch f := function.(type) {
	case *ast.Ident:
		return slices.Contains(free, f.Name)
	case *ast.SelectorExpr:
		base, ok := f.X.(*ast.Ident)
		return ok && slices.Contains(free, base.Name+"."+f.Sel.Name)
	case *ast.ArrayType, *ast.ParenExpr, *ast.MapType: // conversions: []byte("…"), (*T)(nil)
		return true
	}
	return false
}
