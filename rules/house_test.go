package rules

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What a reader can still walk through: lines of one package without its tests, and fields of a
// struct. The bound of a package is to fall, never to rise: what has grown too large is divided.
const (
	longestPackage = 6_000
	mostFields     = 25
	mostWide       = 6 // structs that may have more
)

// larger are the packages that may have more lines, and how many.
var larger = map[string]int{
	"internal/dispatch": 14_500,
}

// wide are the structs that may have more fields, and why.
var wide = map[string]string{
	"internal/pilot.Config":     "what people may say of a pilot, each by a key of its own",
	"internal/server/state.Run": "a record, whose keys are those of JSON",
	"internal/site.Site":        "what people may say of a site, each by a key of its own",
}

// notProduct are the folders of what is no part of the program that people install.
var notProduct = []string{"bench/", "examples/", "test/", "scripts/", "rules/"}

// TestHouse measures packages and structs; `make size` prints what it finds.
func TestHouse(t *testing.T) {
	lines := map[string]int{}
	product, found := 0, map[string]bool{}
	eachSource(t, func(s *source) {
		if s.test() || slices.ContainsFunc(notProduct, func(p string) bool { return strings.HasPrefix(s.path, p) }) {
			return
		}
		lines[s.folder] += s.lines
		product += s.lines
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			if n := of.Fields.NumFields(); n > mostFields {
				name := s.folder + "." + declared.Name.Name
				found[name] = true
				t.Logf("%s: %d fields", name, n)
				if wide[name] == "" {
					complain(t, declared, fmt.Sprintf("%s has %d fields, at most %d: group them", name, n, mostFields))
				}
			}
			return true
		})
	})
	if len(wide) > mostWide {
		t.Errorf("%d structs may have more than %d fields, at most %d", len(wide), mostFields, mostWide)
	}
	for name := range wide {
		if !found[name] {
			t.Errorf("%s has at most %d fields by now, or is gone: it needs no exception", name, mostFields)
		}
	}
	byLines := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return lines[b] - lines[a] })
	for _, folder := range byLines[:6] {
		t.Logf("%s: %d lines", folder, lines[folder])
	}
	for _, folder := range byLines {
		if most := max(longestPackage, larger[folder]); lines[folder] > most {
			t.Errorf("%s: %d lines, at most %d: divide it", folder, lines[folder], most)
		}
	}
	t.Logf("product: %d lines", product)
}
