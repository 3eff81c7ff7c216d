package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// checked is a package whose expressions have types.
type checked struct {
	folder string
	paths  []string
	files  []*ast.File
	set    *token.FileSet
	info   *types.Info
	own    *types.Package
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export, Name string
	GoFiles                       []string
}

// checkTypes reads a package as it is compiled on this system, without its tests. Its own imports are read
// from what the compiler exports.
func checkTypes(pkg string) (*checked, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,Name,GoFiles", pkg)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", pkg, err)
	}
	exports := map[string]string{}
	var last listed // the package itself comes after what it imports
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath], last = l.Export, l
	}
	c := &checked{folder: last.Dir, set: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
	}}
	for _, name := range last.GoFiles {
		path := filepath.Join(last.Dir, name)
		file, err := parser.ParseFile(c.set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.paths, c.files = append(c.paths, path), append(c.files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	c.own, err = config.Check(last.ImportPath, c.set, c.files, c.info)
	return c, err
}

// namesIn are the names by which a file knows what it imports.
func (c *checked) namesIn(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, p := range c.own.Imports() {
		names[p.Path()] = ""
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == p.Path() {
				names[path] = p.Name()
				if i.Name != nil {
					names[path] = i.Name.Name
				}
			}
		}
	}
	return names
}
