package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestSync(t *testing.T) {
	if err := Sync(t.TempDir()); err != nil {
		t.Errorf("a folder: %v", err)
	}
	if err := Sync(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

// A file is replaced, and not what a link in its place, or in that of the file beside it, leads to.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	other, path := filepath.Join(folder, "other"), filepath.Join(folder, "file")
	if err := Replace(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{path, path + ".new"} {
		if err := os.Symlink(other, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{other: "kept", path: "new"} {
		if got, err := os.ReadFile(file); string(got) != want || err != nil {
			t.Errorf("%s has %q: %v", file, got, err)
		}
	}
	if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
		t.Errorf("what is left: %v", names)
	}
	if err := Replace(filepath.Join(folder, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
