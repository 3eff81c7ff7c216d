package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutation is a row: a mechanism, where it is, and a test that fails without it. In mutations.txt
// each has four or more lines, and an empty one after it:
//
//	paper and section: mechanism
//	folder Type.function             (the function by its name, so that code may move)
//	- what stands there, once        (one line of it, or a part; more lines with a "- " each)
//	+ what stands there instead      (may lack)
//	go test ./package -run Test      (as docs/papers.md cites it)
type mutation struct {
	mechanism, folder, function string
	before, after               string
	test                        []string // arguments of go test
}

// parse reads the rows.
func parse(text string) (all []mutation, err error) {
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(block, "\n") {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		m, err := parseRow(lines)
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", lines[0], err)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseRow(lines []string) (m mutation, err error) {
	if len(lines) < 4 {
		return m, fmt.Errorf("%d lines are too few", len(lines))
	}
	m.mechanism = lines[0]
	var ok bool
	if m.folder, m.function, ok = strings.Cut(lines[1], " "); !ok {
		return m, fmt.Errorf("%q is no folder and function", lines[1])
	}
	var before, after []string
	for _, line := range lines[2 : len(lines)-1] {
		switch {
		case strings.HasPrefix(line, "- "):
			before = append(before, line[2:])
		case strings.HasPrefix(line, "+ "):
			after = append(after, line[2:])
		default:
			return m, fmt.Errorf("%q begins with neither - nor +", line)
		}
	}
	m.before, m.after = strings.Join(before, "\n"), strings.Join(after, "\n")
	last := lines[len(lines)-1]
	if m.test = strings.Fields(strings.TrimPrefix(last, "go test ")); !strings.HasPrefix(last, "go test ") {
		return m, fmt.Errorf("%q is no test", last)
	}
	return m, nil
}

// apply returns the file that has the function, and its text without the mechanism.
func (m mutation) apply() (path, text string, err error) {
	files, err := filepath.Glob(filepath.Join(m.folder, "*.go"))
	if err != nil {
		return "", "", err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
		from, to, ok := find(source, m.function)
		if !ok {
			continue
		}
		body := flat(string(source[from:to]))
		if n := strings.Count(body, m.before); n != 1 {
			return "", "", fmt.Errorf("row %q: %s has it %d times, not once: %s", m.mechanism, m.function, n, m.before)
		}
		return path, string(source[:from]) + strings.Replace(body, m.before, m.after, 1) + string(source[to:]), nil
	}
	return "", "", fmt.Errorf("row %q: %s has no function %s", m.mechanism, m.folder, m.function)
}

// find returns where a function stands in a file.
func find(source []byte, name string) (from, to int, ok bool) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, false
	}
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && nameOf(f) == name {
			return set.Position(f.Pos()).Offset, set.Position(f.End()).Offset, true
		}
	}
	return 0, 0, false
}

// nameOf is the name of a function, after that of the type whose method it is.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch g := t.(type) {
	case *ast.IndexExpr:
		t = g.X
	case *ast.IndexListExpr:
		t = g.X
	}
	return t.(*ast.Ident).Name + "." + f.Name.Name
}

// flat drops the indentation of each line, which no row has.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}
