package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// One job writes n temporary files, which go one by one as their readers are committed. What
// is recorded of that is about a line for each of them, and whoever begins from the records
// finds none stored that was removed: a new server, and a new run.
func TestOutputsThatGoOneByOne(t *testing.T) {
	const n = 500
	c, first := New(taskqueue.Config{})
	s, removed, written := newScript(), map[string]bool{}, 0
	s.keep(first.Persist)
	var e taskqueue.Effects
	step := func(in taskqueue.Input) {
		t.Helper()
		var err error
		if e, err = c.Step(epoch, in); err != nil {
			t.Fatal(err)
		}
		s.keep(e.Persist)
		for _, r := range e.Persist {
			written += len(r.Body)
		}
		for _, pfn := range e.Remove {
			removed[pfn] = true
		}
	}
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, Name: "w"}})
	step(taskqueue.Sync{
		Pilot: "a", Seq: 1, Full: true, Draining: true,
		Hello: &taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 1000}},
	})
	cut := []taskqueue.Output{{LFN: "a/*", Pattern: true, Temporary: true}}
	step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "cut", Digest: "cut", Writes: cut}}})
	seq := uint64(2)
	ended := func(job uint32, outputs ...taskqueue.WrittenFile) {
		id := taskqueue.AttemptID(1<<32 | uint64(job))
		step(taskqueue.Sync{Pilot: "a", Seq: seq, Draining: true, Ended: []taskqueue.Result{
			{Job: taskqueue.NewJobID(1, job), Attempt: id, Outputs: outputs},
		}})
		seq++
	}
	var outputs []taskqueue.WrittenFile
	var lfns []string
	var jobs []taskqueue.Job
	for i := range n {
		lfn := fmt.Sprint("a/", i)
		lfns = append(lfns, lfn)
		outputs = append(outputs, taskqueue.WrittenFile{LFN: lfn, Version: 1, PFN: "se:" + lfn, Size: 5})
		jobs = append(jobs, taskqueue.Job{Name: fmt.Sprint("use", i), Reads: []string{lfn}})
	}
	ended(1, outputs...)
	step(taskqueue.Submit{Run: 1, Jobs: jobs})
	step(taskqueue.ReadersKnown{Run: 1, LFNs: lfns})

	written = 0
	for i := range n {
		ended(uint32(i + 2))
		if want := "se:" + lfns[i]; !slices.Equal(e.Remove, []string{want}) {
			t.Fatalf("%v is removed, want %s", e.Remove, want)
		}
		if i%2 == 0 {
			step(taskqueue.Removed{PFN: e.Remove[0]})
		}
		if i%97 != 96 {
			continue
		}
		again, _, err := Load(taskqueue.Config{}, s.records())
		if err != nil {
			t.Fatal(err)
		}
		if was, is := c.snapshot(), again.snapshot(); was != is {
			t.Fatalf("after %d a Load makes something else: %s", i+1, firstDifference(was, is))
		}
		fresh, _, _, err := records.Fresh(s.records())
		if err != nil {
			t.Fatal(err)
		}
		begun := newScript()
		begun.keep(s.records())
		begun.keep(fresh)
		next, _, err := Load(taskqueue.Config{}, begun.records())
		if err != nil {
			t.Fatal(err)
		}
		stored := 0
		for _, u := range next.Unused() {
			for _, pfn := range u.PFNs {
				if stored++; removed[pfn] {
					t.Fatalf("after %d a new run finds %s stored, which was removed", i+1, pfn)
				}
			}
		}
		if stored != n-1-i {
			t.Fatalf("after %d a new run finds %d stored", i+1, stored)
		}
	}
	if written > n*1000 {
		t.Errorf("%d files that went are %d bytes in records", n, written)
	}
	for i := range n {
		step(taskqueue.Removed{PFN: "se:" + lfns[i]})
	}
	for _, r := range s.records() {
		if r.Table == records.TableRemove {
			t.Errorf("the record that removes %s is left", r.Key)
		}
	}
}
