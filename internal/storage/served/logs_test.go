package served

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"fairway/internal/storage"
)

// Pieces of a log are added in their order. One that comes twice, or leaves a gap, changes
// nothing, of one that came in part the rest is added, no name leads elsewhere, and the whole
// takes the place of the pieces.
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
		{"one ", 0, true, "one "},
		{"one ", 0, true, "one "},
		{"gap", 10, false, "one "},
		{"two", 4, true, "one two"},
		{"two", 4, true, "one two"},
		{"x", -1, false, "one two"},
	} {
		if err := put(one.text, LogPiece(7, "out", one.from)); (err == nil) != one.ok {
			t.Errorf("%q from %d on: %v", one.text, one.from, err)
		}
		holds(live, one.want)
	}
	if err := os.Truncate(live, 5); err != nil { // the server was killed while it added the second
		t.Fatal(err)
	}
	if err := put("two", LogPiece(7, "out", 4)); err != nil {
		t.Error(err)
	}
	holds(live, "one two")
	if err := os.Symlink(outside, filepath.Join(folder, "8.out"+LiveEnding)); err != nil {
		t.Fatal(err)
	}
	for _, pfn := range []string{
		"log:../outside@0", "log:a/b@0", "log:8.out@0", "log:7.out@", "log:7.out@x", "log:@0x", "log:9.out@1",
		"log:7.log@0", "log:7.out.live@0", "log:7.@0", "log:+7.out@0", "log:x.out@0",
		"log:7.out.live", "log:7.other", "log:x.out", "log:07.out", "log:../outside", "log:",
	} {
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
	if err := put("late", LogPiece(7, "out", 0)); !errors.Is(err, fs.ErrExist) {
		t.Error("a piece after the whole:", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 { // the whole, and the link
		t.Error("there are", entries, err)
	}
}

// A piece that cannot be added to its end leaves the file as it was, to be sent again.
func TestPieceThatBreaksOffIsNotKept(t *testing.T) {
	live, err := os.Create(filepath.Join(t.TempDir(), "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = live.Close() }()
	for _, one := range []struct {
		piece string
		at    int64
		bad   bool
		want  string
	}{{"one ", 0, false, "one "}, {"ne tw", 1, true, "one "}, {"ne two", 1, false, "one two"}, {"n", 1, true, "one two"}} {
		piece := io.Reader(strings.NewReader(one.piece))
		if one.bad {
			piece = io.MultiReader(piece, iotest.ErrReader(syscall.ENOSPC))
		}
		if err := appendPiece(live, one.at, piece); errors.Is(err, syscall.ENOSPC) != one.bad {
			t.Errorf("%q: %v", one.piece, err)
		}
		if text, err := os.ReadFile(live.Name()); string(text) != one.want {
			t.Errorf("after %q: %q, %v", one.piece, text, err)
		}
	}
}

// A pilot learns that a piece will never be taken, and does not send it again and again.
func TestRefusedPiecesAreNotSentAgain(t *testing.T) {
	n := newNode(t, func(c *Config) {
		all := storage.Local(storage.Roots{State: t.TempDir()})
		all[LogScheme] = Logs(t.TempDir())
		c.Element = all
	}).listen(t)
	e := n.pilot(t, "launch", nil)
	put := func(text, pfn string) error { return e.Put(t.Context(), local(t, text), pfn) }
	err := put("two", LogPiece(7, "out", 4))
	if !IsGap(err) || storage.Temporary(err) {
		t.Error("a gap:", err)
	}
	var status *storage.StatusError
	if err := put("x", "log:7.out.live@0"); !errors.As(err, &status) ||
		status.Status != http.StatusBadRequest || IsGap(err) {
		t.Error("another name:", err)
	}
	for _, pfn := range []string{LogPiece(7, "out", 0), "log:7.out"} {
		if err := put("one", pfn); err != nil {
			t.Error(err)
		}
	}
	if err := put("one", LogPiece(7, "out", 0)); err == nil || IsGap(err) || storage.Temporary(err) {
		t.Error("after the whole:", err)
	}
}
