package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

// A run has its results in no folder that another run of the server has for its own, by whatever name, nor
// around the server's.
func TestResultsOfAnotherRunAreNoPlace(t *testing.T) {
	root := t.TempDir()
	s := &Server{}
	s.folders.Workflow, s.folders.Results = root, filepath.Join(root, "results")
	for _, folder := range []string{"results/7/deep", "else", "results/mine"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("results", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	theirs, ours := taskqueue.Account{Group: "theirs", User: "u"}, taskqueue.Account{Group: "ours", User: "u"}
	s.runs.away = map[taskqueue.RunID]awayRun{
		7: {owner: theirs, results: "file:" + root + "/link/../theirs"}, 8: {owner: ours, results: "file:" + root + "/ours"},
		9: {owner: theirs, results: "dav://host/theirs/"},
	}
	for name, may := range map[string]bool{
		"results/7": false, "results/7/deep/new": false, "results/8": false, "link/7": false, "else/../results/7": false,
		"theirs": false, "theirs/below": false, "ours": true, "ours/below": true, "theirs2": true,
		"else": true, "results/mine": true, "new/7": true, "else/7": true,
	} {
		err := s.notOfAnotherRun("file:"+root+"/"+name, scopeOf(ours))
		if refused := err != nil && strings.Contains(err.Error(), "has its results"); refused == may || may && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, around := range []string{root, root + "/link/..", filepath.Dir(root), "/"} {
		err := s.notOfAnotherRun("file:"+around, scopeOf(taskqueue.Account{Group: "theirs", User: "u"}))
		if err == nil || !strings.Contains(err.Error(), "holds the folder of this server") {
			t.Errorf("%s: %v", around, err)
		}
	}
	for place, may := range map[string]bool{
		"dav://host/results/7": true, "dav://host/theirs": false, "dav://host/theirs/a": false, "dav://host/theirs2": true,
	} {
		if err := s.notOfAnotherRun(place, scopeOf(ours)); (err == nil) != may {
			t.Errorf("%s: %v", place, err)
		}
	}
}
