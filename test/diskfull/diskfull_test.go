package diskfull

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A sandbox that is full fails the attempts, which are tried again, and then the
// jobs.
func TestSandbox(t *testing.T) {
	w := newWorkspace(t)
	w.disk(".fairway/sandbox", tooSmall/2)
	w.mustFail("job part/", " failed: out of disk", "no space left in the sandbox")
	w.makeRoom(".fairway/sandbox")
	w.mustSucceed()
}

// A cache that is full is read and written past: it costs nothing but time.
func TestCache(t *testing.T) {
	w := newWorkspace(t)
	w.disk(".fairway/cache", tooSmall)
	w.mustSucceed()
}

// A pilot that has no room for a cache at all works without one.
func TestCacheFullFromTheBeginning(t *testing.T) {
	w := newWorkspace(t)
	w.disk(".fairway/cache", tooSmall)
	w.fill(".fairway/cache")
	w.mustSucceed()
}

// A storage element that is full fails the attempts that store into it.
func TestStorage(t *testing.T) {
	w := newWorkspace(t)
	w.disk(".fairway/storage", tooSmall)
	w.mustFail("failed: out of disk", "put ", "no space left")
	w.makeRoom(".fairway/storage")
	w.mustSucceed()
}

// Results that do not fit end the run; the next one publishes them.
func TestResults(t *testing.T) {
	w := newWorkspace(t)
	w.disk("results", tooSmall)
	w.mustFail("publishing big.dat", "no space left on device")
	w.makeRoom("results")
	if said := w.mustSucceed(); !strings.Contains(said, "before") {
		t.Errorf("jobs ran again only to publish what was there:\n%s", said)
	}
}

// A place of results that is full is said once, not for each file.
func TestManyResultsThatDoNotFit(t *testing.T) {
	w := newWorkspace(t)
	w.write("workflow.yaml", `
workflow: full
steps:
  part: {times: 40, writes: 'part{number}.dat', command: 'head -c 100000 /dev/zero >"$out"'}
`)
	w.disk("results", tooSmall)
	ok, said := w.run()
	if n := strings.Count(said, "no space left on device"); ok || n < 1 || n > 2 { // as it comes up, and as a problem
		t.Errorf("it is said %d times:\n%s", n, said)
	}
	w.makeRoom("results")
	if ok, said := w.run(); !ok {
		t.Error(said)
	}
}

// storeOnItsOwn puts the store onto a small disk, and all else beside it.
func storeOnItsOwn(t *testing.T) *workspace {
	t.Helper()
	w := newWorkspace(t)
	w.disk(".fairway", plenty)
	for _, name := range []string{"cache", "logs", "pilots", "sandbox", "storage"} {
		elsewhere := w.path("elsewhere/" + name)
		if err := errors.Join(os.MkdirAll(elsewhere, 0o755), os.Symlink(elsewhere, w.path(".fairway/"+name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(w.path(".fairway/inputs"), 0o700); err != nil { // for what fills the disk
		t.Fatal(err)
	}
	return w
}

// fill leaves no room on the disk of a folder.
func (w *workspace) fill(folder string) {
	w.Helper()
	file, err := os.Create(w.path(folder + "/filler"))
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		w.Fatal(err)
	}
}

func (w *workspace) unfill() {
	w.Helper()
	if err := os.Remove(w.path(".fairway/inputs/filler")); err != nil {
		w.Fatal(err)
	}
}

// storeThatFills has the first job fill the disk of the store.
func storeThatFills(t *testing.T) *workspace {
	t.Helper()
	w := storeOnItsOwn(t)
	w.write("workflow.yaml", strings.Replace(text, "head -c", w.path("fill")+"; head -c", 1))
	w.write("fill", "#!/bin/sh\nhead -c 1000000000 /dev/zero >"+w.path(".fairway/inputs/filler")+"\n:\n")
	if err := os.Chmod(w.path("fill"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// empty makes room, and has no job take it again.
func (w *workspace) empty() {
	w.Helper()
	w.write("fill", "#!/bin/sh\n")
	w.unfill()
}

// A store that is full holds the run up until there is room again.
func TestStoreFullForAWhile(t *testing.T) {
	w := storeThatFills(t)
	ok, said := w.runUntil("the store failed", w.empty)
	if !ok || !strings.Contains(said, "database or disk is full") {
		t.Errorf("the run failed, or did not say that the disk is full:\n%s", said)
	}
	w.checkResults()
}

// A store that stays full ends the run, which can be gone on with.
func TestStoreStaysFull(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("it waits for all tries of the store; run it with FAIRWAY_SOAK=1")
	}
	w := storeThatFills(t)
	w.mustFail("the store failed 8 times in a row", "database or disk is full", "run it again to go on")
	w.empty()
	w.mustSucceed()
}

// Nothing begins where there is no room for the store.
func TestStoreFullFromTheBeginning(t *testing.T) {
	w := storeOnItsOwn(t)
	w.fill(".fairway/inputs")
	w.mustFail(w.path(".fairway"), "no space left on device")
	w.unfill()
	w.mustSucceed()
}
