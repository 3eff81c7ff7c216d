package rules

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// empty are words that say nothing about what a thing is: what is named so
// grows into a heap.
var empty = []string{"util", "utils", "utility", "manager", "helper", "helpers", "common", "misc"}

var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func saysNothing(name string) bool {
	for _, w := range word.FindAllString(name, -1) {
		for _, e := range empty {
			if strings.EqualFold(w, e) {
				return true
			}
		}
	}
	return false
}

func TestNames(t *testing.T) {
	eachSource(t, func(s *source) {
		if saysNothing(s.path) {
			t.Errorf("%s: the name says nothing about what is in it", s.path)
		}
		for _, declaration := range s.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if saysNothing(d.Name.Name) {
					complain(t, d, d.Name.Name+" says nothing about what it does")
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && saysNothing(s.Name.Name) {
						complain(t, s, s.Name.Name+" says nothing about what it is")
					}
				}
			}
		}
	})
}

// What stands in the code is what is true; what is to be done stands in the
// tracker.
func TestNoNotesToSelf(t *testing.T) {
	note := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	eachSource(t, func(s *source) {
		for _, group := range s.syntax.Comments {
			if found := note.FindString(group.Text()); found != "" {
				complain(t, group, found+" does not belong into the code")
			}
		}
	})
}
