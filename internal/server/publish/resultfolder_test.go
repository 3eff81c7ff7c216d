package publish

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/logical"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// folderPublication stores a version of a folder with these files.
func folderPublication(
	t *testing.T, s *published, lfn string, version taskqueue.Version, texts map[string]string,
) taskqueue.StoredFile {
	t.Helper()
	source := t.TempDir()
	for name, text := range texts {
		files.Write(t, filepath.Join(source, name), text)
	}
	from, err := beneath.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	name := fmt.Sprintf("%s.v%d.a%d", lfn, version, version)
	path := filepath.Join(s.folders.Storage, name)
	files.Write(t, path, "")
	to, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Pack(t.Context(), to, from), to.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return taskqueue.StoredFile{
		File: taskqueue.FileRef{LFN: lfn, Version: version}, PFN: folder.StoragePrefix + name, Size: info.Size(),
	}
}

// tree lists the regular files of a folder with what they hold.
func tree(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	for name, text := range files.Below(t, folder) {
		all = append(all, name+"="+text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestFolderIsPublishedAsAFolder(t *testing.T) {
	for _, where := range []string{"same file system", "another"} {
		t.Run(where, func(t *testing.T) {
			s := resultsOf(t, t.TempDir())
			results := s.folders.Results
			if where == "another" {
				files.Elsewhere(t, results)
			}
			p := newPublisher(s, noneIsOld, nothingAside(t))
			one := folderPublication(t, s, "q/x/", 1, map[string]string{"a": "1", "d/b": "1"})
			two := folderPublication(t, s, "q/x/", 2, map[string]string{"a": "2", "c": "2"})
			mustPublish(t, p, one)
			if got := tree(t, results); got != "q/x/a=1 q/x/d/b=1" {
				t.Fatalf("after the first version: %s", got)
			}
			before, err := os.Stat(filepath.Join(results, "q/x"))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // with the record, and as after a crash before it was durable
				mustPublish(t, p, one)
				clear(s.records)
			}
			if after, err := os.Stat(filepath.Join(results, "q/x")); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was published again: %v", err)
			}
			mustPublish(t, newPublisher(s, noneIsOld, nothingAside(t)), two)
			if got := tree(t, results); got != "q/x/a=2 q/x/c=2" {
				t.Errorf("after the second version: %s", got)
			}
			open, err := beneath.Open(results)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = open.Close() }()
			if removed, err := s.remove(open, "q/x/"); !removed || err != nil {
				t.Errorf("removed %t, %v", removed, err)
			}
			if left, err := os.ReadDir(results); err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// Whatever a person has done to a published folder: it is not removed, and set aside
// where another version takes its place.
func TestChangedFolderIsSetAside(t *testing.T) {
	for name, change := range map[string]func(folder string) error{
		"file added":   func(f string) error { return os.WriteFile(f+"/note", nil, 0o644) },
		"folder added": func(f string) error { return os.Mkdir(f+"/note", 0o755) },
		"file gone":    func(f string) error { return os.Remove(f + "/a") },
		"file edited": func(f string) error {
			return errors.Join(os.Chmod(f+"/a", 0o644), os.WriteFile(f+"/a", []byte("mine"), 0o644))
		},
		"file replaced": func(f string) error {
			return errors.Join(os.WriteFile(f+"/b", []byte("9"), 0o444), os.Rename(f+"/b", f+"/a"))
		},
		"file renamed": func(f string) error { return os.Rename(f+"/a", f+"/b") },
		"link added":   func(f string) error { return os.Symlink("/etc/passwd", f+"/note") },
		"pipe added":   func(f string) error { return unix.Mkfifo(f+"/note", 0o644) },
		"own folder": func(f string) error {
			return errors.Join(os.RemoveAll(f), os.Mkdir(f, 0o755), os.WriteFile(f+"/z", nil, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := resultsOf(t, t.TempDir())
			results := s.folders.Results
			var aside []string
			p := newPublisher(s, noneIsOld, func(lfn, name string) { aside = append(aside, lfn+" "+name) })
			mustPublish(t, p, folderPublication(t, s, "x/", 1, map[string]string{"a": "1", "k": "1"}))
			if err := change(filepath.Join(results, "x")); err != nil {
				t.Fatal(err)
			}
			open, err := beneath.Open(results)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = open.Close() }()
			if removed, err := s.remove(open, "x/"); removed || err != nil {
				t.Errorf("removed %t, %v", removed, err)
			}
			mustPublish(t, p, folderPublication(t, s, "x/", 2, map[string]string{"a": "2"}))
			if got := tree(t, filepath.Join(results, "x")); got != "a=2" {
				t.Errorf("published is %s", got)
			}
			if want := []string{"x x.~1~"}; !slices.Equal(aside, want) {
				t.Errorf("set aside: %q", aside)
			}
			if _, err := os.Stat(filepath.Join(results, "x.~1~")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A folder, a file and a folder of files take each other's places where what stands
// there is of an earlier run; what is not stays.
func TestFoldersAndFilesGiveWay(t *testing.T) {
	s := resultsOf(t, t.TempDir())
	results := s.folders.Results
	open := func() *beneath.Folder {
		f, err := beneath.Open(results)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	old := func(lfn string) bool {
		ours, err := s.isOurs(open(), lfn)
		return err == nil && ours
	}
	p := newPublisher(s, old, nothingAside(t))
	mustPublish(t, p, folderPublication(t, s, "x/", 1, map[string]string{"a": "1", "d/b": "1"}))
	for version, c := range []struct {
		lfn   string
		files map[string]string // of a folder
		want  string
	}{
		{"x", nil, "x=new"},
		{"x/", map[string]string{"a": "2"}, "x/a=2"},
		{"x/y/z", nil, "x/y/z=new"},
		{"x/", map[string]string{"a": "3"}, "x/a=3"},
		{"x/y/", map[string]string{"a": "4"}, "x/y/a=4"},
		{"x/", nil, "x/"},
	} {
		b := folderPublication(t, s, c.lfn, taskqueue.Version(version+2), c.files)
		if !logical.IsFolder(c.lfn) {
			b = publication(t, s, c.lfn, taskqueue.Version(version+2), "new")
		}
		mustPublish(t, p, b)
		if got := tree(t, results); got != c.want && c.files != nil {
			t.Errorf("%s: there are %s", c.lfn, got)
		}
	}
	if info, err := os.Stat(filepath.Join(results, "x")); err != nil || !info.IsDir() {
		t.Errorf("an empty folder: %v, %v", info, err)
	}
	p = newPublisher(s, noneIsOld, nothingAside(t))
	files.Write(t, filepath.Join(results, "f"), "mine")
	b := folderPublication(t, s, "f/", 1, nil)
	if n, err := p.publishAll([]taskqueue.StoredFile{b}); n != 0 || err == nil ||
		!strings.Contains(err.Error(), "results/f stands in its place") {
		t.Errorf("a person's file: %d published, %v", n, err)
	}
	if got := files.Read(t, filepath.Join(results, "f")); got != "mine" {
		t.Errorf("the person's file is %q", got)
	}
}
