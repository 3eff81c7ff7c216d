package rules

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// fields gathers, by name, which fields of structs are declared and which anything sets outside of
// tests. It goes by names: a field that has the name of another which is set counts as set.
type fields struct {
	declared map[string][]*ast.Ident
	set      map[string]bool
	unkeyed  map[string]bool // types, each with its folder, of which values are made without the names of fields
	folder   string          // that of the file that is looked at
}

// setElsewhere are fields that no statement sets, and why.
var setElsewhere = map[string]string{
	"architecture": "the kernel writes it",
	"Protocols":    "package json writes it",
	"XMLName":      "package xml writes it",
}

// No field of a struct stands there for ever with its zero value: whoever reads it would wonder who
// sets it.
func TestFieldsAreSet(t *testing.T) {
	f := &fields{map[string][]*ast.Ident{}, map[string]bool{}, map[string]bool{}, ""}
	structs := map[string]string{} // of a field: its type
	eachSource(t, func(s *source) {
		if s.test() {
			return
		}
		f.folder = s.folder
		others := !strings.HasPrefix(s.path, "internal/") || strings.HasSuffix(s.folder, "test") // set them
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if _, declares := n.(*ast.TypeSpec); !declares || !others {
				f.note(n, structs)
			}
			return true
		})
	})
	for name, at := range f.declared {
		if !f.set[name] && !f.unkeyed[structs[name]] && setElsewhere[name] == "" {
			complain(t, at[0], "nobody sets the field "+name+" outside of tests: set it, or leave it out")
		}
	}
}

// note takes from a node what it says of fields.
func (f *fields) note(n ast.Node, structs map[string]string) {
	switch n := n.(type) {
	case *ast.TypeSpec:
		if fields, ok := n.Type.(*ast.StructType); ok {
			f.declare(n.Name.Name, fields, structs)
		}
	case *ast.CompositeLit:
		f.made(n, n.Type)
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			f.sets(left)
		}
	case *ast.RangeStmt:
		f.sets(n.Key)
		f.sets(n.Value)
	case *ast.IncDecStmt:
		f.sets(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND { // whoever gets the address may set it
			f.sets(n.X)
		}
	case *ast.CallExpr: // a method may change what it is called of, as that of a map or a counter
		if called, ok := n.Fun.(*ast.SelectorExpr); ok {
			f.sets(called.X)
		}
	}
}

// made takes note of a value of a type that is written down.
func (f *fields) made(value *ast.CompositeLit, of ast.Expr) {
	for _, e := range value.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			f.sets(pair.Key)
			e = pair.Value
		} else {
			f.unkeyed[f.folder+"."+lastName(of)] = true
		}
		if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil { // it is of the type of the elements
			f.made(inner, elementOf(of))
		}
	}
}

// elementOf is the type of the elements of a list or mapping; nil where it has another name.
func elementOf(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ArrayType:
		return e.Elt
	case *ast.MapType:
		return e.Value
	}
	return nil
}

func (f *fields) declare(of string, s *ast.StructType, structs map[string]string) {
	for _, field := range s.Fields.List {
		if field.Tag != nil || setByItself(field.Type) {
			continue // what reads JSON or XML sets it
		}
		for _, name := range field.Names {
			if name.Name != "_" {
				f.declared[name.Name] = append(f.declared[name.Name], name)
				structs[name.Name] = f.folder + "." + of
			}
		}
	}
}

// setByItself reports whether the zero value of a type is of use: a mutex, or an array.
func setByItself(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ArrayType:
		return e.Len != nil
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
	case *ast.IndexExpr:
		return setByItself(e.X)
	}
	return false
}

// sets notes that a field is set: the last one of x.a.b, and those before it, since they hold it.
func (f *fields) sets(e ast.Expr) {
	switch e := e.(type) {
	case *ast.Ident:
		f.set[e.Name] = true
	case *ast.SelectorExpr:
		f.set[e.Sel.Name] = true
		f.sets(e.X)
	case *ast.IndexExpr:
		f.sets(e.X)
	case *ast.SliceExpr:
		f.sets(e.X)
	case *ast.StarExpr:
		f.sets(e.X)
	case *ast.ParenExpr:
		f.sets(e.X)
	}
}

// lastName is the name of a type, without its package.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.StarExpr:
		return lastName(e.X)
	}
	return ""
}
