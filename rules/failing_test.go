package rules

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// harmless are the methods of a test that do not fail it.
var harmless = []string{
	"Add", "Chdir", "Cleanup", "Context", "Deadline", "Fuzz", "Helper", "Log", "Logf", "Name", "Output",
	"Parallel", "Run", "Setenv", "Skip", "SkipNow", "Skipf", "TempDir",
}

// Each test has a way to fail: it calls a method that fails it, or gives itself to what may. A test that is
// made by hand ends with nobody who is told.
func TestEachTestCanFail(t *testing.T) {
	eachSource(t, func(s *source) {
		if !s.test() {
			return
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if made, ok := n.(*ast.CompositeLit); ok && isSelector(made.Type, "testing", "T") {
				t.Errorf("%s: a testing.T is made here: take testing.TB where a benchmark or a fuzz test calls",
					positions.Position(n.Pos()))
			}
			return true
		})
		for _, declaration := range s.syntax.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if ok && f.Recv == nil && isTestName(f.Name.Name) && !mayFail(f.Body) {
				t.Errorf("%s: %s has no way to fail", positions.Position(f.Pos()), f.Name.Name)
			}
		}
	})
}

func isTestName(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}

func isSelector(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && isName(s.X, of)
}

func isName(e ast.Expr, names ...string) bool {
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains(names, id.Name)
}

// mayFail reports whether a body fails the test t or f somewhere, or gives it, or a function that takes one, away.
func mayFail(body *ast.BlockStmt) bool {
	fails := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			fails = fails || ok && isName(called.X, "t", "f") && !slices.Contains(harmless, called.Sel.Name)
			for _, argument := range n.Args {
				named, ok := argument.(*ast.Ident)
				runs := called != nil && called.Sel.Name == "Run" && ok && named.Name != "nil"
				fails = fails || isName(argument, "t", "f") || runs
			}
		case *ast.KeyValueExpr:
			fails = fails || isName(n.Value, "t", "f")
		case *ast.CompositeLit:
			fails = fails || slices.ContainsFunc(n.Elts, func(e ast.Expr) bool { return isName(e, "t", "f") })
		}
		return !fails
	})
	return fails
}
