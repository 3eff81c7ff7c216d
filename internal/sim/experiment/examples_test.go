package experiment

import (
	"path/filepath"
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
