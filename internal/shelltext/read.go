package shelltext

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxText bounds, in bytes, what Read looks at, since the parser recurses as
// deep as a text nests.
const maxText = 100_000

// Text is a command that could be read.
type Text struct {
	text string
	file *syntax.File
}

// Read parses a command as bash does. It returns nil for what is no bash, and
// for what is longer than 100,000 bytes; all methods take a nil Text.
func Read(text string) *Text {
	if len(text) > maxText {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return &Text{text, file}
}

// Interpreter gives the words of a first line that begins with #!, as the
// kernel takes them: a path, and perhaps one argument. It is nil for a text
// without such a line.
func Interpreter(text string) []string {
	line, isNamed := strings.CutPrefix(text, "#!")
	if !isNamed {
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	path, argument, _ := strings.Cut(strings.Trim(line, " \t\r"), " ")
	switch argument = strings.TrimSpace(argument); {
	case path == "":
		return nil
	case argument == "":
		return []string{path}
	}
	return []string{path, argument}
}

func literal(w *syntax.Word) (string, bool) {
	if w == nil || len(w.Parts) != 1 {
		return "", false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.Lit:
		return part.Value, true
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		if len(part.Parts) == 1 {
			if lit, ok := part.Parts[0].(*syntax.Lit); ok {
				return lit.Value, true
			}
		}
	}
	return "", false
}
