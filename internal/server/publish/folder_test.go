package publish

import (
	"os"
	"path/filepath"
	"testing"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
