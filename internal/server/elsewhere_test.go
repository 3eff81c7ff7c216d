package server

import (
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/server/folder"
	"fairway/test/files"
)

// TestResultsOnAnotherFileSystem: publication copies where it cannot link, and a
// later run finds the copies to be what they are.
func TestResultsOnAnotherFileSystem(t *testing.T) {
	root := files.Folder(t, threeTexts)
	files.Elsewhere(t, filepath.Join(root, folder.ResultsFolder))
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.mustSucceed()
	path := filepath.Join(root, folder.ResultsFolder, "joined.txt")
	before, err := os.Stat(path)
	if err != nil || files.Read(t, path) != "ONE TWO THREE " {
		t.Fatalf("got %q, %v", files.Read(t, path), err)
	}
	if entries, err := os.ReadDir(r.folder + "/" + folder.ResultsFolder); err != nil || len(entries) != 1 {
		t.Fatalf("in the results there are %v, %v", entries, err)
	}
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || again.pilots.total() != 0 {
		t.Fatalf("the result was published again, or %d jobs ran: %v", again.pilots.total(), err)
	}
}

// TestStorageBehindALink: the storage element may be moved to another disk, and
// what is committed stays there.
func TestStorageBehindALink(t *testing.T) {
	root := files.Folder(t, threeTexts)
	link := filepath.Join(root, folder.StateFolder, "storage")
	stored := files.Elsewhere(t, link)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	if entries, err := os.ReadDir(stored); err != nil || len(entries) == 0 {
		t.Fatalf("stored are %v, %v", entries, err)
	}
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	if to, err := os.Readlink(link); err != nil || to != stored || again.pilots.total() != 0 {
		t.Fatalf("%d jobs ran again, and the link leads to %q: %v", again.pilots.total(), to, err)
	}
}
