package rules

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestCode bounds the characters of a line of code; a tab is one. Rows of tables may be
// longer, and what stands between backquotes does not count: it is text of others, where a
// new line would mean something.
const longestCode = 120

func TestLinesOfCodeAreShort(t *testing.T) {
	eachSource(t, func(s *source) {
		if s.generated {
			return
		}
		content, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		text, rows := blankRaw(s.syntax, string(content)), rowsOf(s.syntax)
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > longestCode && !rows[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d: %d characters, at most %d", s.path, i+1, n, longestCode)
			}
		}
	})
}

// blankRaw is a source without what stands between backquotes.
func blankRaw(file *ast.File, text string) string {
	var kept strings.Builder
	from := 0
	ast.Inspect(file, func(n ast.Node) bool {
		raw, ok := n.(*ast.BasicLit)
		if !ok || raw.Kind != token.STRING || raw.Value[0] != '`' {
			return true
		}
		start, end := positions.Position(raw.Pos()).Offset, positions.Position(raw.End()).Offset
		kept.WriteString(text[from:start])
		kept.WriteString(strings.Repeat("\n", strings.Count(text[start:end], "\n")))
		from = end
		return true
	})
	kept.WriteString(text[from:])
	return kept.String()
}

// rowsOf are the lines that hold one row each of a table, if there are several: elements of a
// literal, fields of a struct, constants of a group.
func rowsOf(file *ast.File) map[int]bool {
	rows := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			noteRows(rows, n.Lbrace, n.Rbrace, n.Elts)
		case *ast.StructType:
			noteRows(rows, n.Fields.Opening, n.Fields.Closing, n.Fields.List)
		case *ast.GenDecl:
			noteRows(rows, n.Lparen, n.Rparen, n.Specs)
		}
		return true
	})
	return rows
}

// noteRows notes the rows of a table between two brackets: those that share no line.
func noteRows[N ast.Node](rows map[int]bool, from, to token.Pos, table []N) {
	lineOf := func(p token.Pos) int { return positions.Position(p).Line }
	for i, row := range table {
		first, last := lineOf(row.Pos()), lineOf(row.End())
		shared := i > 0 && lineOf(table[i-1].End()) == first || i < len(table)-1 && lineOf(table[i+1].Pos()) == last
		if len(table) > 1 && first == last && !shared && lineOf(from) < first && last < lineOf(to) {
			rows[first] = true
		}
	}
}
