package pilot

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/pilot/stage"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// What a command has written is on its way to disk before it has ended: who watches the command
// looks for that.
func TestTheOutputsOfARunningCommandAreWritten(t *testing.T) {
	pilots, err := os.MkdirTemp(".", "writeback") // of a file system that has a disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(pilots) })
	dir, err := beneath.Open(pilots)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p := &pilot{stage: &stage.Area{
		Folder: pilots, Dir: dir, Roots: storage.Roots{State: pilots}, Prefix: storage.StateScheme + ":",
	}}
	a := &attempt{Execution: stage.Execution{
		Assignment: &wire.Assignment{Attempt: 7, Outputs: []*wire.OutputFile{{Lfn: "x"}}}, Ctx: t.Context(),
	}}
	if a.Slot, err = p.stage.TakeSlot(&a.Execution); err != nil {
		t.Fatal(err)
	}
	defer a.Slot.Close()
	const size = 16 << 20
	if err := os.WriteFile(a.Slot.Folder+"/x", []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(a.Slot.Folder + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dirty := func() uint64 {
		var s unix.Cachestat_t
		if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: size}, &s, 0); err != nil {
			t.Skip(err)
		}
		return s.Dirty
	}
	if dirty() == 0 {
		t.Skip("nothing here waits to be written")
	}
	w := p.watched(a)
	if next := w.Look(time.Now()); next == 0 {
		t.Error("nothing is looked at")
	}
	p.workers.Wait()
	if left := dirty(); left > 0 {
		t.Errorf("%d pages wait to be written", left)
	}
}
