package stage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/internal/beneath"
	"fairway/internal/pilot/process"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// early is a Writeback that notes what it has written instead.
func early(t *testing.T, ar *Area, outputs ...*wire.OutputFile) (w *Writeback, sandbox string, begun *[][2]int64) {
	t.Helper()
	sandbox = t.TempDir()
	dir, err := beneath.Open(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	w = ar.Writeback(&Execution{
		Assignment: &wire.Assignment{Attempt: 1<<32 + 7, Outputs: outputs}, Ctx: t.Context(), Slot: &Slot{dir: dir},
	}, func(f func()) { f() })
	begun = new([][2]int64)
	w.begin = func(_ *os.File, from, to int64) { *begun = append(*begun, [2]int64{from, to}) }
	return w, sandbox, begun
}

// lengthen makes a file that long.
func lengthen(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// What an output has grown by is written while its command goes on, each byte once. One that does
// not grow is looked at ever more seldom.
func TestGrowingOutputsAreWritten(t *testing.T) {
	w, sandbox, begun := early(t, linkingArea(t), &wire.OutputFile{Lfn: "x"})
	path, now := filepath.Join(sandbox, "x"), time.Unix(1, 0)
	for _, step := range []struct {
		what string
		size int64
		want [][2]int64
	}{
		{"little", writebackPiece - 1, nil},
		{"enough", writebackPiece + 5, [][2]int64{{0, writebackPiece + 5}}},
		{"no more", writebackPiece + 5, nil},
		{"much more", 3 * writebackPiece, [][2]int64{{writebackPiece + 5, 3 * writebackPiece}}},
		{"cut", 1, nil},
		{"written anew", 3*writebackPiece - 1, nil},
	} {
		*begun = nil
		lengthen(t, path, step.size)
		now = now.Add(process.WatchInterval)
		if next := w.Look(now); next != process.WatchInterval && step.want != nil {
			t.Errorf("%s: it looks again in %v", step.what, next)
		}
		if !slices.Equal(*begun, step.want) {
			t.Errorf("%s: it has written %v, want %v", step.what, *begun, step.want)
		}
	}
	looks := 0
	for end := now.Add(time.Hour); now.Before(end); looks++ {
		now = now.Add(w.Look(now))
	}
	if looks > 100 {
		t.Errorf("it has looked %d times in an hour at an output that does not grow", looks)
	}
}

// While the disk has not taken what it was given, it gets no more.
func TestTheDiskGetsNoMoreThanItTakes(t *testing.T) {
	w, sandbox, begun := early(t, linkingArea(t), &wire.OutputFile{Lfn: "x"})
	var goOn func()
	w.do = func(f func()) { goOn = f }
	for size := int64(writebackPiece); size <= 3*writebackPiece; size += writebackPiece {
		lengthen(t, filepath.Join(sandbox, "x"), size)
		w.Look(time.Unix(size, 0))
	}
	goOn()
	w.do = func(f func()) { f() }
	w.Look(time.Unix(1<<40, 0))
	if want := [][2]int64{{0, writebackPiece}, {writebackPiece, 3 * writebackPiece}}; !slices.Equal(*begun, want) {
		t.Errorf("it has written %v, want %v", *begun, want)
	}
}

// Outputs that are read to be stored, or are no files of a known name, are left to the kernel.
func TestOtherOutputsAreNotLookedAt(t *testing.T) {
	for what, c := range map[string]struct {
		output *wire.OutputFile
		prefix string
	}{
		"a pattern":            {&wire.OutputFile{Lfn: "*", Pattern: true}, ""},
		"a folder":             {&wire.OutputFile{Lfn: "x/"}, ""},
		"it stays in a cache":  {&wire.OutputFile{Lfn: "x", CacheOnly: true}, ""},
		"stored by another":    {&wire.OutputFile{Lfn: "x"}, "https://storage/"},
		"a name from outside":  {&wire.OutputFile{Lfn: "../x"}, ""},
		"stored in the folder": {&wire.OutputFile{Lfn: "x"}, "file:/tmp/"},
	} {
		ar := linkingArea(t)
		ar.Prefix = storage.StateScheme + ":"
		if c.prefix != "" {
			ar.Prefix = c.prefix
		}
		w, _, _ := early(t, ar, c.output)
		if next := w.Look(time.Unix(1, 0)); next != 0 {
			t.Errorf("%s: it is looked at again in %v", what, next)
		}
	}
}

// Something else under the name of an output is not opened.
func TestOnlyFilesAreWritten(t *testing.T) {
	w, sandbox, begun := early(t, linkingArea(t), &wire.OutputFile{Lfn: "x"})
	target := filepath.Join(t.TempDir(), "y")
	lengthen(t, target, 2*writebackPiece)
	if err := os.Symlink(target, filepath.Join(sandbox, "x")); err != nil {
		t.Fatal(err)
	}
	if w.Look(time.Unix(1, 0)); *begun != nil {
		t.Errorf("it has written %v of what a link leads to", *begun)
	}
}
