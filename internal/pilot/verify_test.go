package pilot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/wire"
)

// damages are what may happen to a stored file.
var damages = map[string]struct {
	do  func(t *testing.T, path string)
	why string
}{
	"gone":    {func(t *testing.T, path string) { check(t, os.Remove(path)) }, "is not there"},
	"cut":     {func(t *testing.T, path string) { check(t, os.Truncate(path, 3)) }, "has 3 bytes and should have 7"},
	"flipped": {func(t *testing.T, path string) { overwrite(t, path, "STORED\n") }, "holds other bytes than were stored"},
	"dated back": {func(t *testing.T, path string) {
		info, err := os.Stat(path)
		check(t, err)
		overwrite(t, path, "STORED\n")
		check(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	}, "holds other bytes than were stored"},
	"replaced": {func(t *testing.T, path string) {
		other := writeFile(t, "STORED\n")
		info, err := os.Stat(path)
		check(t, err)
		check(t, os.Chtimes(other, time.Time{}, info.ModTime()))
		check(t, os.Rename(other, path))
	}, "holds other bytes than were stored"},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite writes into a file in place, a second after it was written to before.
func overwrite(t *testing.T, path, text string) {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	check(t, os.Chmod(path, 0o644))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	check(t, f.Close())
	check(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)))
}

// TestDamagedStoredFileIsNotRead damages what an attempt has stored. The next one that
// reads it does not begin, and tells which file is lost.
func TestDamagedStoredFileIsNotRead(t *testing.T) {
	for name, damage := range damages {
		for _, mode := range []CacheMode{CacheNone, CachePilot} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				q := newTaskQueue(t)
				cfg := q.config("p1")
				cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache", MaxSpace: 1000}
				q.start(cfg)
				r := q.run("p1", shell("echo stored > x", writes("x")))
				expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
				pfn := r.GetOutputs()[0].GetPfn()
				cached, err := filepath.Glob(q.folder + "/cache/*/x@*")
				check(t, err)
				for _, path := range cached { // nor is there a copy of it
					overwrite(t, path, "CACHED\n")
				}
				damage.do(t, strings.TrimPrefix(pfn, "file:"))
				r = q.run("p1", shell("cat x", made(r)))
				expect(t, r, wire.Outcome_OUTCOME_INPUT_LOST, damage.why)
				if len(r.GetLost()) != 1 || r.GetLost()[0].GetPfn() != pfn || r.GetLost()[0].GetFile().GetLfn() != "x" {
					t.Errorf("lost: %v", r.GetLost())
				}
			})
		}
	}
}

// TestDamagedCachedFileIsReadAgain damages the copy in the cache of a pilot that is
// gone. The next one takes the cache over, and reads the stored file instead.
func TestDamagedCachedFileIsReadAgain(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	first := q.start(cfg)
	r := q.run("p1", shell("echo stored > x", writes("x")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	first.stop()
	cached, err := filepath.Glob(cfg.Cache.Dir + "/*/x@*")
	if err != nil || len(cached) != 1 {
		t.Fatalf("cached: %v, %v", cached, err)
	}
	info, err := os.Stat(cached[0])
	check(t, err)
	other := writeFile(t, "STORED\n")
	check(t, os.Chtimes(other, time.Time{}, info.ModTime()))
	check(t, os.Rename(other, cached[0]))
	cfg.Pilot = "p2"
	q.start(cfg)
	expect(t, q.run("p2", shell("grep stored x", made(r))), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// TestWriterOfInputDamagesItOnce: the first attempt that finds its input written to is
// not blamed, since another may have done it. With a copy of its own it is, and does no
// more harm; an innocent one does well with such a copy.
func TestWriterOfInputDamagesItOnce(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	q.start(cfg)
	makeX := func() (*wire.Result, string) {
		r := q.run("p1", shell("echo stored > x", writes("x")))
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		return r, strings.TrimPrefix(r.GetOutputs()[0].GetPfn(), "file:")
	}
	private := func(a *wire.Assignment) { a.Private = true }
	const inPlace = "chmod u+w x; printf STORED 1<>x"
	x, _ := makeX()
	r := q.run("p1", shell(inPlace, made(x)))
	expect(t, r, wire.Outcome_OUTCOME_INPUT_LOST, "or another one that reads it")
	if len(r.GetLost()) != 1 || r.GetLost()[0].GetPfn() != x.GetOutputs()[0].GetPfn() {
		t.Errorf("lost: %v", r.GetLost())
	}
	x, path := makeX()
	expect(t, q.run("p1", shell(inPlace, made(x), private)), wire.Outcome_OUTCOME_INPUT_CHANGED,
		"the command wrote to its input x in place; have it write to a copy")
	if got := contents(t, path); got != "stored\n" {
		t.Errorf("the stored file holds %q", got)
	}
	expect(t, q.run("p1", shell("grep stored x", made(x), private)), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// A person who writes to an input while a job reads it is not told that the command did.
func TestPersonWhoChangesAnInputDoesNotBlameTheCommand(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	path := writeFile(t, "input\n")
	folder := t.TempDir()
	check(t, unix.Mkfifo(folder+"/go", 0o644))
	a := shell("echo > "+folder+"/ready; read line < "+folder+"/go; cat x", tagged(t, reads("x", 0, 6, path), path))
	q.assign("p1", a)
	appears(t, folder+"/ready")
	overwrite(t, path, "INPUT\n")
	check(t, os.WriteFile(folder+"/go", []byte("go\n"), 0))
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_INPUT_CHANGED,
		"the command, or somebody else meanwhile, wrote to its input x in place, and so changed "+path)
}
