package experiment

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestExamplesAreLegal(t *testing.T) {
	files, err := filepath.Glob("../../../examples/sim/*.yaml")
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

// The files that docs/sim.md shows are legal experiments.
func TestDocumentedExperimentsAreLegal(t *testing.T) {
	const name = "../../../docs/sim.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := fenced.FindAllSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("docs/sim.md shows %d experiments", len(blocks))
	}
	for _, block := range blocks {
		if _, err := Parse(name, block[1]); err != nil {
			t.Error(err)
		}
	}
}
