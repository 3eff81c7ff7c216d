package survey

import (
	"testing"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
)

// A pattern of a URL is no path on this machine: only a run can tell which files
// it has.
func TestPatternsOfURLsAreLeftToTheRun(t *testing.T) {
	w, err := workflow.Parse("w.yaml", []byte(`workflow: w
inputs:
  far: {files: ['s3://bucket/{sample}.fq', 'none/{sample}.fq']}
steps:
  s: {each: '{sample}.fq', writes: '{sample}.out', command: cp "$in" "$out"}
`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.New(w)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	listed, err := NewListing(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := Input{Declared: f.Inputs()[0], folder: folder, listed: listed}
	if found.survey(); len(found.problems) != 1 {
		t.Errorf("%v; want one, of the path", found.problems)
	}
}
