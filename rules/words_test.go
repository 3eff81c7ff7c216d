package rules

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const (
	// mostWords is how many words of documentation people write and keep true: README, CONTRIBUTING and
	// docs, with the decision notes. Beyond it a page says something that another one says too.
	mostWords = 40_000
	// mostWordsOfResults is the same of the figures beside the benchmarks.
	mostWordsOfResults = 8_000
)

// generatedPages are made from code, so nobody has to keep them true.
var generatedPages = []string{
	"docs/calls.md", "docs/commands.md", "docs/decisions/README.md", "docs/keys.md", "docs/limits.md",
	"docs/packages.md", "docs/python-api.md",
}

// The documentation stays as short as somebody can read it.
func TestDocumentationHasABound(t *testing.T) {
	words, results := 0, 0
	var pages []string
	err := walk(".md", func(name string, content []byte) error {
		count := 0
		for word := range strings.FieldsSeq(string(content)) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				count++
			}
		}
		switch {
		case strings.HasPrefix(path.Base(name), "RESULTS"):
			results += count
		case !slices.Contains(generatedPages, name) &&
			(name == "README.md" || name == "CONTRIBUTING.md" || strings.HasPrefix(name, "docs/")):
			words += count
			pages = append(pages, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d words in %d pages, %d in results of benchmarks", words, len(pages), results)
	if words > mostWords {
		t.Errorf("the documentation has %d words, at most %d", words, mostWords)
	}
	if results > mostWordsOfResults {
		t.Errorf("the results of benchmarks have %d words, at most %d", results, mostWordsOfResults)
	}
}
