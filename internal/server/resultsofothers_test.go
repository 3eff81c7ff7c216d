package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run has its results in no folder that another run of the server has for its own, by whatever name.
func TestResultsOfAnotherRunAreNoPlace(t *testing.T) {
	root := t.TempDir()
	s := &Server{}
	s.folders.Results = filepath.Join(root, "results")
	for _, folder := range []string{"results/7/deep", "else", "results/mine"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("results", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for name, may := range map[string]bool{
		"results/7": false, "results/7/deep/new": false, "results/8": false, "link/7": false, "else/../results/7": false,
		"else": true, "results/mine": true, "new/7": true, "else/7": true,
	} {
		err := s.notOfAnotherRun("file:" + root + "/" + name)
		if refused := err != nil && strings.Contains(err.Error(), "has its results"); refused == may || may && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.notOfAnotherRun("dav://host/results/7"); err != nil {
		t.Error(err)
	}
}
