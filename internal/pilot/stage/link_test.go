package stage

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/beneath"
	"fairway/internal/cache"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// linkingArea is one of a pilot on the machine of its server, which caches only what cannot be
// linked, with a folder for its sandboxes.
func linkingArea(t *testing.T) *Area {
	c, err := cache.Open(cache.Config{Dir: t.TempDir(), Name: "p", MaxSpace: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	roots := storage.Roots{State: t.TempDir()}
	return &Area{
		Sched: sched.Default(), Log: slog.New(slog.DiscardHandler), Cache: c, Roots: roots, Folder: t.TempDir(),
		Storage: elements.New(roots, sched.Default().Sleep), Spared: true, Unsummed: true, Prefix: storage.StateScheme + ":",
	}
}

// storedOutput stores an output of so many bytes, and returns what is told of it.
func storedOutput(t *testing.T, ar *Area, lfn string, size int) *wire.WrittenFile {
	t.Helper()
	sandbox := t.TempDir()
	writeText(t, filepath.Join(sandbox, lfn), strings.Repeat("x", size))
	dir, err := beneath.Open(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	a := &Execution{
		Assignment: &wire.Assignment{Attempt: 1<<32 + 7}, Ctx: t.Context(), Slot: &Slot{dir: dir}, In: &Inputs{},
	}
	out, err := ar.store(a, written{&wire.OutputFile{Lfn: lfn, Version: 1}, lfn, lfn})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readBack is an attempt that reads an output.
func readBack(t *testing.T, ar *Area, out *wire.WrittenFile) (*Inputs, error) {
	t.Helper()
	sandbox, err := os.MkdirTemp(ar.Folder, "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	a := &Execution{
		Assignment: &wire.Assignment{Inputs: []*wire.InputFile{{
			File: &wire.FileRef{Lfn: out.GetLfn(), Version: 1, Tag: 1<<32 + 7}, Pfn: out.GetPfn(), Size: out.GetSize(),
			Adler32: out.GetAdler32(), Written: out.GetWritten(),
		}}},
		Ctx: t.Context(), Result: &wire.Result{Usage: &wire.Usage{}}, Slot: &Slot{Folder: sandbox},
	}
	in := NewInputs(ar, a)
	in.files = []*input{newInput(a.GetInputs()[0])}
	return in, in.add(in.files[0])
}

// What can be linked to where it is stored goes past the cache, counts for nothing, and needs no
// turn to be brought in.
func TestWhatCanBeLinkedGoesPastTheCache(t *testing.T) {
	ar := linkingArea(t)
	out := storedOutput(t, ar, "x", 10)
	in, err := readBack(t, ar, out)
	if err != nil {
		t.Fatal(err)
	}
	stored, _ := ar.Roots.Path(out.GetPfn())
	if !os.SameFile(infoOf(t, stored), infoOf(t, filepath.Join(in.attempt.Slot.Folder, "x"))) {
		t.Error("the job reads a copy")
	}
	if u := in.attempt.Result.GetUsage(); u.GetCacheHits()+u.GetCacheMisses() != 0 || u.GetBytesStaged() != 0 {
		t.Errorf("the link counts as moved: %v", u)
	}
	if held := ar.Cache.Contents(); len(held) != 0 {
		t.Errorf("the cache holds %v", held)
	}
	if again := NewInputs(ar, in.attempt); !again.TakeCached() {
		t.Error("it is not prepared ahead")
	}
	ar.Spared = false
	if in, err = readBack(t, ar, out); err != nil {
		t.Fatal(err)
	}
	if held := ar.Cache.Contents(); len(held) != 1 || in.attempt.Result.GetUsage().GetCacheMisses() != 1 {
		t.Errorf("a cache that holds all has %v", held)
	}
}

// A large output that is only linked is not read: its time tells whether it is as it was stored.
func TestLargeOutputsAreKnownByTheirTime(t *testing.T) {
	ar := linkingArea(t)
	if out := storedOutput(t, ar, "small", largeOutput-1); out.GetAdler32() == 0 || out.GetWritten() != 0 {
		t.Errorf("a small output has %v", out)
	}
	out := storedOutput(t, ar, "x", largeOutput)
	if out.GetAdler32() != 0 || out.GetWritten() == 0 || out.GetSize() != largeOutput {
		t.Fatalf("a large output has %v", out)
	}
	if _, err := readBack(t, ar, out); err != nil {
		t.Fatal("as it was stored:", err)
	}
	path, _ := ar.Roots.Path(out.GetPfn())
	if err := os.Chmod(path, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := readBack(t, ar, out); err != nil {
		t.Fatal("as a program:", err)
	}
	stored := infoOf(t, path)
	for name, damage := range map[string]func() error{
		"written to": func() error { return os.Chtimes(path, time.Time{}, stored.ModTime().Add(1)) },
		"writable":   func() error { return os.Chmod(path, 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := readBack(t, ar, out)
		if outcome, lost := OutcomeOf(err, 0); outcome != wire.Outcome_OUTCOME_INPUT_LOST || lost.GetPfn() != out.GetPfn() {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chtimes(path, time.Time{}, stored.ModTime()); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, stored.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// Sums are found where somebody else may need them: another machine, or a copy that has its own
// time.
func TestLargeOutputsAreSummedForOthers(t *testing.T) {
	for name, change := range map[string]func(*Area){
		"pilots of other machines": func(ar *Area) { ar.Unsummed = false },
		"another element":          func(ar *Area) { ar.Prefix = "file:" + t.TempDir() + "/" },
	} {
		ar := linkingArea(t)
		change(ar)
		out := storedOutput(t, ar, "x", largeOutput)
		if out.GetAdler32() == 0 || out.GetWritten() != 0 {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// A cache of another host, which may send anything, is no source of what nothing but a time
// proves.
func TestWhatHasNoSumComesFromNoOtherCache(t *testing.T) {
	ar := sharingArea(t)
	i := newInput(&wire.InputFile{
		File: &wire.FileRef{Lfn: "x", Version: 1, Tag: 1<<32 + 7}, Size: 1, Written: 1, Source: &wire.Source{Pilot: "p2"},
	})
	if _, err := ar.fromSource(t.Context(), i, nil, ""); err != errNoSource { //nolint:errorlint // it is not wrapped
		t.Error("another cache was asked:", err)
	}
}

// A file from outside that is linked is the one that the run took up, whatever its size and time
// say.
func TestALinkedInputIsTheOneThatWasTakenUp(t *testing.T) {
	ar := linkingArea(t)
	path := filepath.Join(t.TempDir(), "x")
	writeText(t, path, "text")
	taken := infoOf(t, path)
	read := func() (*Inputs, error) {
		a := &Execution{
			Ctx: t.Context(), Result: &wire.Result{Usage: &wire.Usage{}}, Slot: &Slot{Folder: t.TempDir()},
			Assignment: &wire.Assignment{},
		}
		in := NewInputs(ar, a)
		return in, in.add(newInput(&wire.InputFile{
			File: &wire.FileRef{Lfn: "x", Version: 1, Tag: storage.TagOf("file:"+path, storage.InfoOf(taken))},
			Pfn:  "file:" + path,
		}))
	}
	if in, err := read(); err != nil || !os.SameFile(taken, infoOf(t, filepath.Join(in.attempt.Slot.Folder, "x"))) {
		t.Fatal("it is not linked:", err)
	}
	other := path + ".new"
	writeText(t, other, "TEXT")
	if err := errors.Join(os.Chtimes(other, time.Time{}, taken.ModTime()), os.Rename(other, path)); err != nil {
		t.Fatal(err)
	}
	in, err := read()
	if outcome, _ := OutcomeOf(err, 0); outcome != wire.Outcome_OUTCOME_INPUT_CHANGED {
		t.Error("another file was read:", err)
	}
	if left := contents(t, in.attempt.Slot); len(left) != 0 {
		t.Errorf("the sandbox holds %v", left)
	}
}
