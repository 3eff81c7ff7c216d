package rules

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const root = ".."

// source is one Go file of the repository, whatever its build tags.
type source struct {
	path      string // relative to the root
	folder    string
	lines     int
	generated bool
	syntax    *ast.File
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

var positions = token.NewFileSet()

var sources = sync.OnceValues(func() ([]*source, error) {
	var found []*source
	err := walk(".go", func(path string, content []byte) error {
		syntax, err := parser.ParseFile(positions, path, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = append(found, &source{
			path:      path,
			folder:    filepath.Dir(path),
			lines:     bytes.Count(content, []byte("\n")),
			generated: ast.IsGenerated(syntax),
			syntax:    syntax,
		})
		return nil
	})
	return found, err
})

// walk visits the files of the repository whose names end with suffix.
func walk(suffix string, visit func(path string, content []byte) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, suffix) {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		return visit(path, content)
	})
}

func eachSource(t *testing.T, visit func(*source)) {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if !s.generated {
			visit(s)
		}
	}
}

func complain(t *testing.T, at ast.Node, message string) {
	t.Helper()
	t.Errorf("%s: %s", positions.Position(at.Pos()), message)
}

// linesOf returns the lines of a file of the repository.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}
