package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"
)

// summed brings in a file that holds text.
func summed(t *testing.T, c *Cache, lfn, text string) *File {
	t.Helper()
	f, _, err := c.Fetch(t.Context(), item(lfn, int64(len(text))), func(path string) (int64, Hash, error) {
		return int64(len(text)), blake3.Sum256([]byte(text)), os.WriteFile(path, []byte(text), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What was damaged on the disk between two pilots is no hit for the second one, also if it has
// the adler32 that it had.
func TestTakenOverFilesAreVerified(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(Config{Dir: dir, Name: "first", MaxSpace: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, lfn := range []string{"good", "bad", "fetched"} {
		f := summed(t, first, lfn, "0123456789")
		if lfn != "good" {
			if err := os.WriteFile(f.Path(), []byte("0124266789"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f.Release()
	}
	put(t, first, "unknown", 10).Release()
	first.Close()

	c, _ := open(t, dir, "second")
	for lfn, want := range map[string]bool{"good": true, "bad": false, "unknown": true} {
		f, ok := c.Get(t.Context(), item(lfn, 10))
		if ok != want {
			t.Errorf("%s is there: %v", lfn, ok)
		}
		if ok {
			f.Release()
		}
	}
	f := summed(t, c, "fetched", "0123456789")
	defer f.Release()
	if held, err := os.ReadFile(f.Path()); err != nil || string(held) != "0123456789" {
		t.Error("a damaged file was taken for a hit:", string(held), err)
	}
}

// A pilot that starts beside another one, where many files have come and gone, keeps what
// is recorded of that one's files, and that one goes on to record.
func TestALongListOfSumsIsCut(t *testing.T) {
	dir := t.TempDir()
	first, _ := open(t, dir, "first", shared)
	summed(t, first, "before", "0123456789").Release()
	path := filepath.Join(dir, sumsName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	gone := sumLine(fileName(item("gone", 10)), Hash{7})
	_, err = f.WriteString(strings.Repeat("x", 1<<17) + "\n" + strings.Repeat(gone, maxSums/2/len(gone)))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	second, _ := open(t, dir, "second", shared)
	summed(t, second, "of the second", "0123456789").Release()
	summed(t, first, "after", "0123456789").Release()
	recorded := readSums(dir)
	for _, lfn := range []string{"before", "of the second", "after"} {
		if recorded[fileName(item(lfn, 10))] != blake3.Sum256([]byte("0123456789")) {
			t.Error(lfn, "is not known to the next pilot")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 1000 {
		t.Error("the list was not cut:", info.Size(), err)
	}
}

// Whatever stands in the file of sums, a cache opens, and believes whole lines only.
func FuzzSums(f *testing.F) {
	name := fileName(item("a", 10))
	f.Add(sumLine(name, Hash{7}) + sumLine(name, Hash{8}))
	f.Add("00000007 " + name)
	f.Add("7 x\n0000000g " + name + "\n" + strings.Repeat("x", 1<<17))
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/"+sumsName, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for name := range readSums(dir) {
			if _, ok := parseName(name); !ok {
				t.Fatalf("%q is no name of a file", name)
			}
		}
	})
}

// A file that a pilot has taken over is compared by each pilot of the host that takes a link to
// it, and what one has found damaged it does not take back from another.
func TestLinksToTakenOverFilesAreVerified(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(Config{Dir: dir, Name: "first", MaxSpace: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, lfn := range []string{"linked", "asked for", "good"} {
		f := summed(t, first, lfn, "0123456789")
		if lfn != "good" {
			if err := os.WriteFile(f.Path(), []byte("0124266789"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f.Release()
	}
	first.Close()

	a, _ := open(t, dir, "a", shared)
	b, seen := open(t, dir, "b", shared)
	b.SetPeers([]string{a.Dir(), b.Dir()})
	seen.until(t, func() bool { return has(b, "linked") && has(b, "asked for") && has(b, "good") })
	a.SetPeers([]string{a.Dir(), b.Dir()})
	for _, c := range []*Cache{b, a} {
		for _, lfn := range []string{"linked", "asked for"} {
			f := summed(t, c, lfn, "0123456789")
			if held, err := os.ReadFile(f.Path()); err != nil || string(held) != "0123456789" {
				t.Errorf("%s has %q of %s: %v", c.cfg.Name, held, lfn, err)
			}
			f.Release()
		}
	}
	if f, ok := b.Get(t.Context(), item("good", 10)); ok {
		f.Release()
	} else {
		t.Error("a good file is not taken over")
	}
}
