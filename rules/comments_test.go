package rules

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A package comment states what the package guarantees, so there is one, and
// only one, in each package.
func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	names := map[string]string{}
	eachSource(t, func(s *source) {
		if s.test() {
			return
		}
		names[s.folder] = s.syntax.Name.Name
		if s.syntax.Doc == nil {
			return
		}
		comments[s.folder]++
		if !opens(s) {
			complain(t, s.syntax, "the package comment must begin with Package and the name, or of a program with the name")
		}
	})
	for folder := range names {
		if comments[folder] != 1 {
			t.Errorf("%s: %d package comments, want one", folder, comments[folder])
		}
	}
}

func opens(s *source) bool {
	text := s.syntax.Doc.Text()
	if s.syntax.Name.Name != "main" {
		return strings.HasPrefix(text, "Package "+s.syntax.Name.Name+" ")
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "Command "), " ")
	return strings.EqualFold(first, filepath.Base(s.folder))
}

// Every exported name has a comment. A group of constants or variables may
// have one for all.
func TestExportedComments(t *testing.T) {
	eachSource(t, func(s *source) {
		if s.test() || s.syntax.Name.Name == "main" {
			return
		}
		for _, declaration := range s.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil && !standard[d.Name.Name] {
					complain(t, d, d.Name.Name+" has no comment")
				}
			case *ast.GenDecl:
				commentsOf(t, d)
			}
		}
	})
}

// standard methods need no comment: their interface says what they do.
var standard = map[string]bool{
	"String": true, "Error": true, "Unwrap": true, "Is": true, "Len": true, "Less": true, "Swap": true,
	"Push": true, "Pop": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true, "UnmarshalYAML": true,
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return false
		}
	}
}

func commentsOf(t *testing.T, d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				complain(t, s, s.Name.Name+" has no comment")
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					complain(t, name, name.Name+" has no comment")
				}
			}
		}
	}
}
