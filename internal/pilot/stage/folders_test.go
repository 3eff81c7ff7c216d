package stage

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/archive"
	"fairway/internal/cache"
	"fairway/internal/wire"
)

// treeOf makes a folder with a file, a folder and a link in it.
func treeOf(t *testing.T) *folderTree {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tree")
	err := errors.Join(os.MkdirAll(filepath.Join(path, "sub"), 0o755), os.Symlink("a", filepath.Join(path, "link")))
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(path, "a"), "text")
	tree, err := newFolderTree(path, []archive.Entry{
		{Name: "a", Kind: archive.File}, {Name: "link", Kind: archive.Link, Target: "a"}, {Name: "sub", Kind: archive.Folder},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// A folder counts as changed when one of its files was written to, and not when one was replaced or moved.
func TestAFolderChangesWhenAFileIsWrittenTo(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(file string) error
		changed bool
	}{
		"nothing": {func(string) error { return nil }, false},
		"removed": {os.Remove, false},
		"replaced": {func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("longer text"), 0o600), os.Rename(file+".new", file))
		}, false},
		"longer": {func(file string) error { return os.WriteFile(file, []byte("longer text"), 0o600) }, true},
		"later":  {func(file string) error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) }, true},
	} {
		tree := treeOf(t)
		if err := c.change(filepath.Join(tree.path, "a")); err != nil {
			t.Fatal(err)
		}
		if tree.changed() != c.changed {
			t.Errorf("%s: it counts as changed: %v", what, !c.changed)
		}
	}
	tree := treeOf(t)
	if _, err := newFolderTree(tree.path, []archive.Entry{{Name: "missing"}}); !isMissing(err) {
		t.Error("a file that is not there:", err)
	}
}

// A folder appears with what is in it; who gets copies may write to their own ones only.
func TestModesOfWhatAppears(t *testing.T) {
	tree := treeOf(t)
	for _, c := range []struct {
		of, shared, own fs.FileMode
	}{{0o644, 0o444, 0o644}, {0o755, 0o555, 0o755}, {0o200, 0o400, 0o600}, {0o444, 0o444, 0o644}} {
		file, into := filepath.Join(tree.path, "a"), t.TempDir()
		if err := os.Chmod(file, c.of); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tree.appear(t.Context(), filepath.Join(into, "shared"), copyFile),
			tree.appear(t.Context(), filepath.Join(into, "own"), ownFile)); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{
			"shared/a": c.shared, "own/a": c.own, "shared": 0o755, "shared/sub": 0o755, "own": 0o755,
		} {
			if info := infoOf(t, filepath.Join(into, name)); info.Mode().Perm() != want {
				t.Errorf("of %o %s has the mode %o", c.of, name, info.Mode().Perm())
			}
		}
		if made := infoOf(t, filepath.Join(into, "own/a")); !made.ModTime().Equal(infoOf(t, file).ModTime()) {
			t.Error("a copy has another time")
		}
		if err := ownFile(t.Context(), file, filepath.Join(into, "missing", "a")); err == nil {
			t.Error("a copy was made where no folder is")
		}
	}
}

// An unpacked folder is made by one, used by all who ask, and goes when nobody uses it or waits for it.
func TestUnpackedFoldersAreShared(t *testing.T) {
	ar := slotArea(t)
	var log bytes.Buffer
	ar.Log = slog.New(slog.NewTextHandler(&log, nil))
	key := folderKey{cache.Ref{LFN: "d/", Version: 1}, "p"}
	u, mine := ar.folders.take(key)
	if !mine || ar.folders.get(key) != nil {
		t.Fatal("a folder that is being made is there, or made by nobody")
	}
	ar.folders.finish(u, nil)
	if u, mine = ar.folders.take(key); !mine {
		t.Fatal("what could not be made is not tried again")
	}
	path := filepath.Join(ar.Folder, unpackedName, "1")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	ar.folders.finish(u, &folderTree{path: path})
	in := NewInputs(ar, &Execution{Assignment: &wire.Assignment{
		Inputs: []*wire.InputFile{{File: &wire.FileRef{Lfn: "d/", Version: 1}, Pfn: "p"}},
	}})
	if !in.TakeCached() || in.Unpacked("d/") != path || in.Unpacked("e/") != "" {
		t.Errorf("it is at %q and %q", in.Unpacked("d/"), in.Unpacked("e/"))
	}
	in.Release()
	in.Release()
	if u.users != 1 {
		t.Errorf("%d use it", u.users)
	}
	other := NewInputs(ar, &Execution{Assignment: &wire.Assignment{
		Inputs: []*wire.InputFile{{File: &wire.FileRef{Lfn: "d/", Version: 2}, Pfn: "p"}},
	}})
	if other.TakeCached() {
		t.Error("a folder that is not there was taken")
	}
	ar.RemoveUnusedFolders(nil)
	if ar.folders.release(u); !ar.HasFolders() {
		t.Fatal("it has gone while it was used")
	}
	ar.RemoveUnusedFolders(in.attempt.GetInputs())
	if !ar.HasFolders() {
		t.Fatal("it has gone, and was waited for")
	}
	again := ar.folders.get(key)
	ar.folders.spoilt(again)
	if ar.folders.get(key) != nil {
		t.Error("a folder that was written to is taken")
	}
	ar.folders.release(again)
	ar.RemoveUnusedFolders(in.attempt.GetInputs())
	if _, err := os.Stat(path); !isMissing(err) || ar.HasFolders() {
		t.Error("it is there still:", err)
	}
	if strings.Contains(log.String(), "could not be removed") {
		t.Error(log.String())
	}
}

// Where no hard link can be made an input is linked by a path.
func TestLinksToAnotherDisk(t *testing.T) {
	elsewhere, err := os.MkdirTemp("/dev/shm", "fairway")
	if err != nil {
		t.Skip("there is no other disk:", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	from, to := filepath.Join(elsewhere, "x"), filepath.Join(t.TempDir(), "x")
	writeText(t, from, "text")
	if err := linkInto(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if err := linkInto(from, to); !errors.Is(err, fs.ErrExist) {
		t.Error("what stands there:", err)
	}
}
