package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/dispatch"
)

func publication(t *testing.T, folder, lfn string, version dispatch.Version, text string) dispatch.Publish {
	t.Helper()
	pfn := filepath.Join(folder, "storage", lfn+".v"+string('0'+rune(version)))
	write(t, pfn, text)
	return dispatch.Publish{File: dispatch.FileRef{LFN: lfn, Version: version}, PFN: pfn}
}

func noneIsOld(string) bool { return false }

// Old results give way to a file in the place of their folder, and to a folder in
// their place; what else stands there stays, and so does then all beside it.
func TestOldResultsGiveWay(t *testing.T) {
	root := t.TempDir()
	results := filepath.Join(root, "results")
	old := func(lfn string) bool { return read(t, filepath.Join(results, lfn)) == "old" }
	write(t, filepath.Join(results, "a"), "old")
	write(t, filepath.Join(results, "b/c/d"), "old")
	write(t, filepath.Join(results, "b/e"), "old")
	p := newPublisher(results, old)
	batch := []dispatch.Publish{publication(t, root, "a/x/y", 1, "new"), publication(t, root, "b", 1, "new")}
	if n, err := p.publishAll(batch); n != 2 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	if read(t, filepath.Join(results, "a/x/y"))+read(t, filepath.Join(results, "b")) != "newnew" {
		t.Error("other results stand there")
	}
	write(t, filepath.Join(results, "f/g"), "old")
	write(t, filepath.Join(results, "f/h"), "mine")
	for _, lfn := range []string{"f", "f/h/i"} {
		n, err := p.publishAll([]dispatch.Publish{publication(t, root, lfn, 2, "new")})
		if n != 0 || err == nil || !strings.Contains(err.Error(), "results/f/h stands in its place") {
			t.Errorf("%s: %d published, %v", lfn, n, err)
		}
	}
	if read(t, filepath.Join(results, "f/g"))+read(t, filepath.Join(results, "f/h")) != "oldmine" {
		t.Error("what is no old result, or stands beside it, did not stay")
	}
}

func TestPublishIsRepeatableAndFenced(t *testing.T) {
	folder := t.TempDir()
	results := filepath.Join(folder, "results")
	first := publication(t, folder, "deep/er/a.txt", 1, "one")
	second := publication(t, folder, "deep/er/a.txt", 2, "two")
	p := newPublisher(results, noneIsOld)
	if n, err := p.publishAll([]dispatch.Publish{first, second}); n != 2 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	target := filepath.Join(results, "deep/er/a.txt")
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	// the one before comes late, and the last one again from a later process
	if n, err := p.publishAll([]dispatch.Publish{first}); n != 1 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	if n, err := newPublisher(results, noneIsOld).publishAll([]dispatch.Publish{second}); n != 1 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	after, err := os.Stat(target)
	if err != nil || !os.SameFile(before, after) || read(t, target) != "two" {
		t.Fatalf("the result changed: %q, %v", read(t, target), err)
	}
}

func TestPublishRefusesToLeaveItsFolder(t *testing.T) {
	folder := t.TempDir()
	out := publication(t, folder, "x", 1, "text")
	out.File.LFN = "../outside"
	if n, err := newPublisher(filepath.Join(folder, "results"), noneIsOld).publishAll([]dispatch.Publish{out}); n != 0 || err == nil {
		t.Fatalf("%d published, %v", n, err)
	}
}

func TestCopyWithTimeCountsAsTheSame(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	write(t, source, "text")
	if err := copyWithTime(source, target); err != nil {
		t.Fatal(err)
	}
	if same, err := sameFile(source, target); !same || err != nil {
		t.Fatalf("%v, %v", same, err)
	}
}

// elsewhere makes a folder on another file system than the test's, and link a
// symbolic link to it.
func elsewhere(t *testing.T, link string) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "fairway")
	if err != nil {
		t.Skipf("there is no other file system to use: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestResultsOnAnotherFileSystem: publication copies where it cannot link, and a
// later run finds the copies to be what they are.
func TestResultsOnAnotherFileSystem(t *testing.T) {
	root := folder(t, threeTexts)
	elsewhere(t, filepath.Join(root, ResultsFolder))
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.mustSucceed()
	path := filepath.Join(root, ResultsFolder, "joined.txt")
	before, err := os.Stat(path)
	if err != nil || read(t, path) != "ONE TWO THREE " {
		t.Fatalf("got %q, %v", read(t, path), err)
	}
	if entries, err := os.ReadDir(r.folder + "/" + ResultsFolder); err != nil || len(entries) != 1 {
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
	root := folder(t, threeTexts)
	stored := elsewhere(t, StorageFolder(root))
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	if entries, err := os.ReadDir(stored); err != nil || len(entries) == 0 {
		t.Fatalf("stored are %v, %v", entries, err)
	}
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	if to, err := os.Readlink(StorageFolder(root)); err != nil || to != stored || again.pilots.total() != 0 {
		t.Fatalf("%d jobs ran again, and the link leads to %q: %v", again.pilots.total(), to, err)
	}
}

// TestCopyIsPublishedOnceAfterACrash: whatever a publication by copying has left
// behind when it was cut short, the next one leads to one name, with the
// source's contents.
func TestCopyIsPublishedOnceAfterACrash(t *testing.T) {
	root := t.TempDir()
	results := filepath.Join(root, "results")
	elsewhere(t, results)
	first := publication(t, root, "a.txt", 1, "one")
	write(t, filepath.Join(results, unpublishedName), "on") // the copy was not complete
	for range 2 {
		if n, err := newPublisher(results, noneIsOld).publishAll([]dispatch.Publish{first}); n != 1 || err != nil {
			t.Fatalf("%d published, %v", n, err)
		}
	}
	if entries, err := os.ReadDir(results); err != nil || len(entries) != 1 || read(t, filepath.Join(results, "a.txt")) != "one" {
		t.Fatalf("in the results there are %v, %v", entries, err)
	}
}
