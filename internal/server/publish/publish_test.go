package publish

import (
	"errors"
	"fmt"
	"hash/adler32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// resultsOf is what a state publishes into a folder, with nothing recorded yet.
func resultsOf(t *testing.T, root string) *published {
	t.Helper()
	state := filepath.Join(root, folder.StateFolder)
	folders := folder.Layout{Workflow: root, State: state, Results: filepath.Join(root, folder.ResultsFolder), ID: "own",
		Storage: filepath.Join(state, "storage", "own")}
	if err := os.MkdirAll(folders.Storage, 0o755); err != nil {
		t.Fatal(err)
	}
	return &published{folders: folders, records: map[string]publishedRecord{}}
}

// publication stores a version as an attempt of the same number would.
func publication(t *testing.T, s *published, lfn string, version taskqueue.Version, text string) taskqueue.StoredFile {
	t.Helper()
	name := fmt.Sprintf("%s.v%d.a%d", lfn, version, version)
	files.Write(t, filepath.Join(s.folders.Storage, name), text)
	return taskqueue.StoredFile{
		File: taskqueue.FileRef{LFN: lfn, Version: version}, PFN: folder.StoragePrefix + name, Size: int64(len(text)),
	}
}

func noneIsOld(string) bool { return false }

func nothingAside(t *testing.T) func(lfn, name string) {
	return func(lfn, name string) { t.Errorf("%s was set aside as %s", lfn, name) }
}

func mustPublish(t *testing.T, p *publisher, batch ...taskqueue.StoredFile) {
	t.Helper()
	if n, err := p.publishAll(batch); n != len(batch) || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
}

// What is copied is read, so its checksum is compared; another link is not read.
func TestADamagedFileIsNotCopied(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "fairway")
	if err != nil {
		t.Skipf("there is no other file system to use: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	for _, where := range []string{"", other} {
		s := resultsOf(t, t.TempDir())
		if where != "" {
			s.folders.Results = filepath.Join(where, "results")
		}
		b := publication(t, s, "a", 1, "new")
		b.Adler32 = adler32.Checksum([]byte("now"))
		n, err := newPublisher(s, noneIsOld, nothingAside(t)).publishAll([]taskqueue.StoredFile{b})
		if _, lost := errors.AsType[*lostError](err); lost != (where != "") || (n == 1) != (where == "") {
			t.Errorf("results in %q: %d published, %v", where, n, err)
		}
		if left, _ := filepath.Glob(s.folders.Results + "/.*"); len(left) > 0 {
			t.Error("left behind:", left)
		}
	}
}

// A pilot may have told another size than what it stored has.
func TestAFileOfAnotherSizeIsNotPublished(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	b := publication(t, s, "a", 1, "new")
	b.Size = 7
	n, err := newPublisher(s, noneIsOld, nothingAside(t)).publishAll([]taskqueue.StoredFile{b})
	if n != 0 || err == nil || !strings.Contains(err.Error(), "has 3 bytes and should have 7") {
		t.Errorf("%d published, %v", n, err)
	}
	if _, err := os.Lstat(filepath.Join(s.folders.Results, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Of a file without a checksum the time tells whether it is what a pilot has stored.
func TestAFileOfAnotherTimeIsNotPublished(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	b := publication(t, s, "a", 1, "new")
	path, err := s.folders.Roots().Path(b.PFN)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b.Written = storage.Written(info.ModTime())
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Add(1)); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(s, noneIsOld, nothingAside(t))
	if n, err := p.publishAll([]taskqueue.StoredFile{b}); n != 0 || err == nil || !strings.Contains(err.Error(),
		"was written to, or replaced, since it was stored") {
		t.Errorf("%d published, %v", n, err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, p, b)
}

// Old results give way to a file in the place of their folder, and to a folder in
// their place; what else stands there stays, and so does then all beside it.
func TestOldResultsGiveWay(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	results := s.folders.Results
	old := func(lfn string) bool { return files.Read(t, filepath.Join(results, lfn)) == "old" }
	files.Write(t, filepath.Join(results, "a"), "old")
	files.Write(t, filepath.Join(results, "b/c/d"), "old")
	files.Write(t, filepath.Join(results, "b/e"), "old")
	p := newPublisher(s, old, nothingAside(t))
	mustPublish(t, p, publication(t, s, "a/x/y", 1, "new"), publication(t, s, "b", 1, "new"))
	if files.Read(t, filepath.Join(results, "a/x/y"))+files.Read(t, filepath.Join(results, "b")) != "newnew" {
		t.Error("other results stand there")
	}
	files.Write(t, filepath.Join(results, "f/g"), "old")
	files.Write(t, filepath.Join(results, "f/h"), "mine")
	for version, lfn := range []string{"f", "f/h/i"} {
		b := publication(t, s, fmt.Sprint("source", version), 2, "new")
		b.File.LFN = lfn
		n, err := p.publishAll([]taskqueue.StoredFile{b})
		if n != 0 || err == nil || !strings.Contains(err.Error(), "results/f/h stands in its place") {
			t.Errorf("%s: %d published, %v", lfn, n, err)
		}
	}
	if files.Read(t, filepath.Join(results, "f/g"))+files.Read(t, filepath.Join(results, "f/h")) != "oldmine" {
		t.Error("what is no old result, or stands beside it, did not stay")
	}
}

func TestPublishIsRepeatableAndFenced(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	first := publication(t, s, "deep/er/a.txt", 1, "one")
	second := publication(t, s, "deep/er/a.txt", 2, "two")
	p := newPublisher(s, noneIsOld, nothingAside(t))
	mustPublish(t, p, first, second)
	target := filepath.Join(s.folders.Results, "deep/er/a.txt")
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	// the one before comes late, and the last one again from a later process
	mustPublish(t, p, first)
	mustPublish(t, newPublisher(s, noneIsOld, nothingAside(t)), second)
	after, err := os.Stat(target)
	if err != nil || !os.SameFile(before, after) || files.Read(t, target) != "two" {
		t.Fatalf("the result changed: %q, %v", files.Read(t, target), err)
	}
}

func TestPublishRefusesToLeaveItsFolder(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	out := publication(t, s, "x", 1, "text")
	out.File.LFN = "../outside"
	p := newPublisher(s, noneIsOld, nothingAside(t))
	if n, err := p.publishAll([]taskqueue.StoredFile{out}); n != 0 || err == nil {
		t.Fatalf("%d published, %v", n, err)
	}
}

// A new version of the size and the time of the one before is another version:
// tar and touch make such files.
func TestVersionsOfOneSizeAndTimeAreToldApart(t *testing.T) {
	for _, where := range []string{"same file system", "another"} {
		root := t.TempDir()
		s := resultsOf(t, root)
		if where == "another" {
			files.Elsewhere(t, s.folders.Results)
		}
		for version, text := range []string{"one", "two"} {
			b := publication(t, s, "a", taskqueue.Version(version+1), text)
			name, _ := storage.StateName(b.PFN)
			when := time.Unix(1_700_000_000, 0)
			if err := os.Chtimes(filepath.Join(s.folders.Storage, name), when, when); err != nil {
				t.Fatal(err)
			}
			mustPublish(t, newPublisher(s, noneIsOld, nothingAside(t)), b)
			if got := files.Read(t, filepath.Join(s.folders.Results, "a")); got != text {
				t.Errorf("%s: %q stands there, want %q", where, got, text)
			}
			clear(s.records) // as after a crash before they were durable
		}
	}
}

// What a person has put under the name of a result, or written into one, is kept
// under another name.
func TestPublishingDestroysNothingForeign(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	results := s.folders.Results
	files.Write(t, filepath.Join(results, "a"), "mine")
	files.Write(t, filepath.Join(results, "a.~1~"), "mine before")
	files.Write(t, filepath.Join(results, ".fairway-publishing"), "mine too")
	var aside []string
	p := newPublisher(s, noneIsOld, func(lfn, name string) { aside = append(aside, lfn+" "+name) })
	mustPublish(t, p, publication(t, s, "a", 1, "one"), publication(t, s, "b", 1, "one"))
	files.Write(t, filepath.Join(results, "b"), "edited")
	if err := os.Remove(filepath.Join(results, "b")); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(results, "b"), "replaced")
	mustPublish(t, p, publication(t, s, "a", 2, "two"), publication(t, s, "b", 2, "two"))
	for name, want := range map[string]string{
		"a": "two", "a.~1~": "mine before", "a.~2~": "mine", "b": "two", "b.~1~": "replaced",
		".fairway-publishing": "mine too",
	} {
		if got := files.Read(t, filepath.Join(results, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if want := []string{"a a.~2~", "b b.~1~"}; !slices.Equal(aside, want) {
		t.Errorf("told that %q were set aside, want %q", aside, want)
	}
}

// A link that something has left in the results folder is not followed.
func TestPublishingFollowsNoLinks(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	outside := t.TempDir()
	files.Write(t, filepath.Join(outside, "x"), "foreign")
	files.Write(t, filepath.Join(s.folders.Results, "other"), "")
	for _, link := range []string{"folder", "file"} {
		to := map[string]string{"folder": outside, "file": filepath.Join(outside, "x")}[link]
		if err := os.Symlink(to, filepath.Join(s.folders.Results, link)); err != nil {
			t.Fatal(err)
		}
	}
	var aside []string
	p := newPublisher(s, noneIsOld, func(_, name string) { aside = append(aside, name) })
	n, err := p.publishAll([]taskqueue.StoredFile{publication(t, s, "folder/x", 1, "new")})
	if n != 0 || err == nil || !strings.Contains(err.Error(), "results/folder stands in its place") {
		t.Errorf("%d published, %v", n, err)
	}
	mustPublish(t, p, publication(t, s, "file", 1, "new"))
	if files.Read(t, filepath.Join(outside, "x")) != "foreign" ||
		files.Read(t, filepath.Join(s.folders.Results, "file")) != "new" {
		t.Error("a link was followed")
	}
	if to, err := os.Readlink(filepath.Join(s.folders.Results, "file.~1~")); err != nil ||
		to != filepath.Join(outside, "x") {
		t.Errorf("the link is gone: %q, %v, %q", to, err, aside)
	}
}

// TestCopyIsPublishedOnceAfterACrash: whatever a publication by copying has left
// behind when it was cut short, the next one leads to one name, with the
// source's contents.
func TestCopyIsPublishedOnceAfterACrash(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	files.Elsewhere(t, s.folders.Results)
	first := publication(t, s, "a.txt", 1, "one")
	// the copy was not complete
	files.Write(t, filepath.Join(s.folders.Results, newPublisher(s, nil, nil).unpublishedName()), "on")
	var before os.FileInfo
	for range 2 {
		clear(s.records)
		mustPublish(t, newPublisher(s, noneIsOld, nothingAside(t)), first)
		after, err := os.Stat(filepath.Join(s.folders.Results, "a.txt"))
		if err != nil || before != nil && !os.SameFile(before, after) {
			t.Errorf("it was published again: %v", err)
		}
		before = after
	}
	if entries, err := os.ReadDir(s.folders.Results); err != nil || len(entries) != 1 ||
		files.Read(t, filepath.Join(s.folders.Results, "a.txt")) != "one" {
		t.Fatalf("in the results there are %v, %v", entries, err)
	}
}

// A stored file that nobody needs goes at any moment, so also while the next version
// takes the place of its other name: that is a result nevertheless, and nobody's own file.
func TestResultsAreKnownWhileTheirStoredFilesAreRemoved(t *testing.T) {
	for _, where := range []string{"same file system", "another"} {
		s := resultsOf(t, t.TempDir())
		if where == "another" {
			files.Elsewhere(t, s.folders.Results)
		}
		p := newPublisher(s, noneIsOld, nothingAside(t))
		for version := taskqueue.Version(1); version < 500 && !t.Failed(); version += 2 {
			first := publication(t, s, "a", version, "first")
			second := publication(t, s, "a", version+1, "second")
			mustPublish(t, p, first)
			// a change of the inode, as caches make them, leaves the record in doubt
			if err := os.Chmod(filepath.Join(s.folders.Results, "a"), 0o600); err != nil {
				t.Fatal(err)
			}
			name, _ := storage.StateName(first.PFN)
			removed := make(chan error)
			go func() { removed <- os.Remove(filepath.Join(s.folders.Storage, name)) }()
			mustPublish(t, p, second)
			if err := <-removed; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A server that was frozen, after it had learnt that its term goes on and before the rename, publishes
// nothing when another one has published meanwhile: neither what it had ready, nor what it makes ready
// then.
func TestAReplacedServerPublishesNothing(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	first, second := publication(t, s, "a", 1, "old"), publication(t, s, "a", 2, "new")
	term := uint64(1)
	by := func(mine uint64, asked func()) *publisher {
		own := &published{folders: s.folders, records: map[string]publishedRecord{}}
		p := newPublisher(own, noneIsOld, nothingAside(t))
		p.term, p.assert = mine, func() error {
			if term != mine {
				return store.ErrSuperseded
			}
			asked()
			return nil
		}
		return p
	}
	late := by(1, func() {
		term = 2
		mustPublish(t, by(2, func() {}), second)
	})
	if n, err := late.publishAll([]taskqueue.StoredFile{first}); n != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has published what it had ready: %d, %v", n, err)
	}
	if n, err := late.publishAll([]taskqueue.StoredFile{first}); n != 0 || !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("it has published what it made ready later: %d, %v", n, err)
	}
	if got := files.Below(t, s.folders.Results); len(got) != 1 || got["a"] != "new" {
		t.Errorf("there are %q", got)
	}
}
