package dispatch

import (
	"testing"

	"fairway/internal/taskqueue"
)

// A cached file is read next by the first job that waits for its turn, or for other files, whatever is ready.
func TestNextReaderOfACachedFile(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{
		{LFN: "x", PFN: "p", Size: 1}, {LFN: "y", PFN: "q", Size: 1},
	}})
	writes := func(lfn string) []taskqueue.Output { return []taskqueue.Output{{LFN: lfn}} }
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{
		{Name: "make", Step: "s", Writes: writes("z")},
		{Name: "late", Step: "s", Reads: []string{"z", "x"}},
		{Name: "later", Step: "s", Reads: []string{"z", "x"}},
		{Name: "change", Step: "s", Reads: []string{"x"}, Writes: writes("x")},
		{Name: "last", Step: "s", Reads: []string{"x"}},
	}})
	row := func(name string) uint32 {
		id, _ := b.core.JobNamed(1, name)
		return b.core.jobs.find(id).row
	}
	check := func(lfn string, version taskqueue.Version, want uint32) {
		t.Helper()
		v := b.core.files.version(taskqueue.FileRef{Run: 1, LFN: lfn, Version: version})
		if got, ok := b.core.placement.nextReader(v); got != want || ok != (want != 0) {
			t.Errorf("%s@%d is read next by %d, %v; want %d", lfn, version, got, ok, want)
		}
	}
	check("x", 0, row("late"))
	check("y", 0, 0)
	id, _ := b.core.JobNamed(1, "change")
	d, _ := b.core.Detail(id)
	check("x", d.Writes[0].File.Version, row("last"))
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "ready", Step: "s", Reads: []string{"y"}}}})
	check("y", 0, row("ready"))
}

// How a job reads its inputs is shown with them.
func TestDetailTellsHowInputsAreRead(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{
		{LFN: "x", PFN: "p", Size: 1}, {LFN: "y", PFN: "q", Size: 1},
	}})
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "s", Reads: []string{"x", "y"},
		Access: []taskqueue.Access{taskqueue.AccessStream, taskqueue.AccessCopy}}}})
	id, _ := b.core.JobNamed(1, "j")
	d, ok := b.core.Detail(id)
	if !ok || len(d.Reads) != 2 || d.Reads[0].Access != taskqueue.AccessStream ||
		d.Reads[1].Access != taskqueue.AccessCopy {
		t.Errorf("%+v", d.Reads)
	}
}

// What a job was committed with stays, whatever another attempt says that it has stored.
func TestALateAttemptRemovesNothingThatCounts(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "s", Writes: []taskqueue.Output{{LFN: "o"}}}}})
	b.sync("p", nil)
	first := b.begins("p")
	b.sync("p", func(s *taskqueue.Sync) { s.Leaving = true })
	b.sync("q", nil)
	second := b.begins("q")
	result := func(a taskqueue.Assignment, pfn string) taskqueue.Result {
		return taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{
			{LFN: "o", Version: a.Outputs[0].Version, PFN: pfn, Size: 1},
		}}
	}
	b.sync("q", func(s *taskqueue.Sync) { s.Ended = []taskqueue.Result{result(second, "kept")} })
	if v, _ := b.core.Job(first.Job); v.State != taskqueue.Done {
		t.Fatal("it is", v.State)
	}
	for pfn, goes := range map[string]bool{"kept": false, "other": true} {
		late := result(first, pfn)
		late.Attempt += taskqueue.AttemptID(len(pfn)) << 40 // attempts of which nothing is known
		e := b.step(taskqueue.Sync{Pilot: "r", Seq: uint64(len(pfn)), Ended: []taskqueue.Result{late}})
		if removed := len(e.Remove) == 1 && e.Remove[0] == pfn; removed != goes || len(e.Remove) > 1 {
			t.Errorf("of %s are removed %v", pfn, e.Remove)
		}
	}
}
