package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file system that knows no files without a name serves as well.
func TestUnnamedOnEveryFileSystem(t *testing.T) {
	for _, kind := range []int{unix.O_TMPFILE, 0} {
		tmpfile = kind
		folder := t.TempDir()
		left, err := CreateUnnamed(folder, os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		u, err := CreateUnnamed(folder, os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"one ", "two"} {
			if _, err := u.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if _, err := u.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(folder, "name")
		if err := u.Link(name); err != nil {
			t.Fatal(err)
		}
		if err := left.Link(name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
		if err := errors.Join(u.Close(), left.Close()); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(name); string(text) != "one two" || err != nil {
			t.Errorf("read %q, %v", text, err)
		}
		if entries, err := os.ReadDir(folder); len(entries) != 1 || err != nil {
			t.Errorf("left are %v, %v", entries, err)
		}
	}
	tmpfile = unix.O_TMPFILE
}
