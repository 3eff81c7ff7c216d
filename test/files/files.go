// Package files makes and reads the files of tests. A test ends where a file cannot be made or
// read.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Write makes a file hold a text, with the folders above it, and returns its path.
func Write(t testing.TB, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns what a file holds.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Folder makes a folder that ends with the test and has these files, by relative path.
func Folder(t testing.TB, texts map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range texts {
		Write(t, filepath.Join(root, name), text)
	}
	return root
}

// Below returns what the regular files below a folder hold, by relative path. Where there is no
// such folder there are none.
func Below(t testing.TB, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	root, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return texts
	}
	if err == nil {
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			name, err := filepath.Rel(root, path)
			texts[name] = Read(t, path)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Elsewhere makes a folder on another file system than those of Folder, and a symbolic link to
// it. It skips the test where there is no such file system.
func Elsewhere(t testing.TB, link string) (folder string) {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "fairway")
	if err != nil {
		t.Skipf("there is no other file system to use: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(folder, link)); err != nil {
		t.Fatal(err)
	}
	return folder
}
