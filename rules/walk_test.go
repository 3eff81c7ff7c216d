package rules

import (
	"go/ast"
	"go/importer"
	"go/types"
	"strings"
	"testing"
)

// Whoever reads what becomes of a result, or which job a pilot gets, follows the calls from one
// function through the files of the TaskQueue. walks bounds how often a call leads back to a file that
// the reader had left.
var walks = map[string]int{"resultArrived": 60, "pull": 45}

const walkedPackage = "internal/dispatch"

func TestTheTaskQueueReadsDownwards(t *testing.T) {
	g, err := callsOf(t, walkedPackage)
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range walks {
		w := g.walk(name)
		t.Logf("from %s: %d functions in %d files, %d times back to a file that was left", name, len(w.seen),
			len(w.files), w.back)
		if w.back > most {
			t.Errorf("from %s a call leads back %d times to a file that was left, at most %d", name, w.back, most)
		}
	}
}

// calls are the functions of a package, each with those of the package that it names, in the order of
// its text.
type calls struct {
	of   map[string][]string
	file map[string]string
}

func callsOf(t *testing.T, folder string) (*calls, error) {
	var list []*ast.File
	eachSource(t, func(s *source) {
		if s.folder == folder && !s.test() {
			list = append(list, s.syntax)
		}
	})
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(positions, "source", nil)}
	pkg, err := config.Check(folder, positions, list, info)
	if err != nil {
		return nil, err
	}
	g := &calls{map[string][]string{}, map[string]string{}}
	for _, f := range list {
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			name := nameOf(info.Defs[function.Name])
			g.file[name] = positions.Position(function.Pos()).Filename
			ast.Inspect(function.Body, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				if called, ok := info.Uses[id].(*types.Func); ok && called.Pkg() == pkg {
					g.of[name] = append(g.of[name], nameOf(called.Origin()))
				}
				return true
			})
		}
	}
	return g, nil
}

// nameOf is the full name of a function or method.
func nameOf(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.FullName()
	}
	return o.Name()
}

// reading is what a reader goes through who follows each call once, in the order of the text.
type reading struct {
	*calls
	seen  map[string]bool
	files map[string]bool
	back  int
}

func (g *calls) walk(from string) *reading {
	w := &reading{g, map[string]bool{}, map[string]bool{}, 0}
	for name := range g.file {
		if strings.HasSuffix(name, "."+from) {
			w.visit(name)
		}
	}
	return w
}

func (w *reading) visit(name string) {
	w.seen[name] = true
	w.files[w.file[name]] = true
	for _, called := range w.of[name] {
		file := w.file[called]
		if w.seen[called] || file == "" {
			continue
		}
		if w.files[file] && file != w.file[name] {
			w.back++
		}
		w.visit(called)
	}
}
