package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestExamplesAreLegal(t *testing.T) {
	files, err := filepath.Glob("../../examples/sim/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if _, err := ParseFile(file); err != nil {
			t.Error(err)
		}
	}
}

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The file that docs/sim.md shows is a legal experiment.
func TestDocumentedExperimentIsLegal(t *testing.T) {
	text, err := os.ReadFile("../../docs/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	block := fenced.FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/sim.md shows no experiment")
	}
	if _, err := Parse("docs/sim.md", block[1]); err != nil {
		t.Error(err)
	}
}
