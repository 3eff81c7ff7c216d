package rules

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestLine is the width of prose in documents, in characters: a longer line
// is hard to read in a diff and in a terminal.
const longestLine = 100

// A line of prose in a document is no longer than longestLine. Tables, code and
// pictures have the width that they need, and so does a line of one word.
func TestLinesOfDocumentsAreShort(t *testing.T) {
	eachLineOfProse(t, func(path string, number int, line string) {
		if utf8.RuneCountInString(line) > longestLine && strings.Contains(strings.TrimSpace(line), " ") &&
			!strings.HasPrefix(line, "![") {
			t.Errorf("%s:%d: %d characters, at most %d", path, number, utf8.RuneCountInString(line), longestLine)
		}
	})
}

// foreign are phrases that an international reader stumbles over, and what to
// write instead.
var foreign = map[string]*regexp.Regexp{
	`"again", or "from the beginning"`:         regexp.MustCompile(`(?i)\banew\b`),
	`"also", "in addition", or a new sentence`: regexp.MustCompile(`(?i)(\bbesides[,.;:]|(^|[.;:] )besides\b)`),
	`"on average"`: regexp.MustCompile(`(?i)\bin the mean[,.;: ]`),
	"nothing outside the repository: move it here": regexp.MustCompile(`DESIGN\.md`),
}

// The documentation is written in plain words, and refers to no file outside
// the repository.
func TestPlainWords(t *testing.T) {
	eachLineOfProse(t, func(path string, number int, line string) {
		for instead, phrase := range foreign {
			if found := phrase.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: write %s", path, number, found, instead)
			}
		}
	})
}

// eachLineOfProse visits the lines of the documents that are neither table nor
// code.
func eachLineOfProse(t *testing.T, visit func(path string, number int, line string)) {
	t.Helper()
	err := walk(".md", func(path string, content []byte) error {
		inCode := false
		for i, line := range strings.Split(string(content), "\n") {
			trimmed := strings.TrimSpace(line)
			fence := strings.HasPrefix(trimmed, "```")
			if fence {
				inCode = !inCode
			}
			if fence || inCode || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(line, "    ") &&
				!strings.HasPrefix(trimmed, "- ") {
				continue
			}
			visit(path, i+1, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
