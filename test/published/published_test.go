package published

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWatcher: it sees a file each time that it is renamed into place, and
// complains of one that is moved there from outside, linked or removed.
func TestWatcher(t *testing.T) {
	folder := t.TempDir()
	w := Watch(t, folder, "below")
	move := func(from, to string) {
		if err := os.WriteFile(filepath.Join(folder, from), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, from), filepath.Join(folder, "results", to)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		move("results/.hidden", "below/x")
	}
	move("outside", "from-outside")
	if err := os.Link(
		filepath.Join(folder, "results", "below", "x"), filepath.Join(folder, "results", "linked"),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "results", "linked")); err != nil {
		t.Fatal(err)
	}
	sizes, wrong := w.Stop()
	if len(sizes) != 1 || len(sizes["below/x"]) != 3 || len(wrong) != 3 {
		t.Fatalf("seen: %v, and wrong: %q", sizes, wrong)
	}
}
