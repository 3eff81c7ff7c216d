package served

import (
	"os"
	"path/filepath"
	"testing"
)

// Pieces of a log are added in their order. One that comes twice, or leaves a gap, changes
// nothing, no name leads elsewhere, and the whole takes the place of the pieces.
func TestPiecesOfALog(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	l := Logs(folder)
	put := func(text, pfn string) error {
		t.Helper()
		path := filepath.Join(t.TempDir(), "piece")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return l.Put(t.Context(), path, pfn)
	}
	live := filepath.Join(folder, "7.out"+LiveEnding)
	holds := func(path, want string) {
		t.Helper()
		if text, err := os.ReadFile(path); string(text) != want {
			t.Errorf("%s holds %q, not %q: %v", filepath.Base(path), text, want, err)
		}
	}
	for _, one := range []struct {
		text string
		from int64
		ok   bool
		want string
	}{
		{"one ", 0, true, "one "}, {"one ", 0, true, "one "}, {"gap", 10, false, "one "},
		{"two", 4, true, "one two"}, {"two", 4, true, "one two"}, {"x", -1, false, "one two"},
	} {
		if err := put(one.text, LogPiece(7, "out", one.from)); (err == nil) != one.ok {
			t.Errorf("%q from %d on: %v", one.text, one.from, err)
		}
		holds(live, one.want)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "8.out"+LiveEnding)); err != nil {
		t.Fatal(err)
	}
	for _, pfn := range []string{"log:../outside@0", "log:a/b@0", "log:8.out@0", "log:7.out@", "log:7.out@x", "log:@0x"} {
		if err := put("bad", pfn); err == nil {
			t.Error(pfn, "was taken")
		}
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a piece was written elsewhere")
	}
	if err := put("one two three", "log:7.out"); err != nil {
		t.Fatal(err)
	}
	holds(filepath.Join(folder, "7.out"), "one two three")
	if _, err := os.Lstat(live); err == nil {
		t.Error("the pieces are still there")
	}
}
