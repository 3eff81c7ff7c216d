package dispatch

import (
	"fmt"
	"slices"
	"testing"
)

// One job writes n temporary files, which go one by one as their readers are committed. What
// is recorded of that is about a line for each of them, and whoever begins from the records
// finds none stored that was removed: a new server, and a new run.
func TestOutputsThatGoOneByOne(t *testing.T) {
	const n = 500
	c, first := New(Config{})
	s, removed, written := newScript(), map[string]bool{}, 0
	s.keep(first.Persist)
	var e Effects
	step := func(in Input) {
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
	step(SetRun{Run{ID: 1, Name: "w"}})
	step(Sync{
		Pilot: "a", Seq: 1, Full: true, Draining: true, Hello: &PilotInfo{Host: "h", Has: Resources{MilliCPUs: 1000}},
	})
	jobs := []Job{{Name: "cut", Digest: "cut", Writes: []Output{{LFN: "a/*", Pattern: true, Temporary: true}}}}
	step(Submit{Run: 1, Jobs: jobs})
	seq := uint64(2)
	ended := func(job uint32, outputs ...WrittenFile) {
		step(Sync{Pilot: "a", Seq: seq, Draining: true, Ended: []Result{{
			Job: NewJobID(1, job), Attempt: AttemptID(1<<32 | uint64(job)), Outcome: Succeeded, Outputs: outputs,
		}}})
		seq++
	}
	var outputs []WrittenFile
	var lfns []string
	jobs = nil
	for i := range n {
		lfn := fmt.Sprint("a/", i)
		lfns = append(lfns, lfn)
		outputs = append(outputs, WrittenFile{LFN: lfn, Version: 1, PFN: "se:" + lfn, Size: 5})
		jobs = append(jobs, Job{Name: fmt.Sprint("use", i), Reads: []string{lfn}})
	}
	ended(1, outputs...)
	step(Submit{Run: 1, Jobs: jobs})
	step(ReadersKnown{1, lfns})

	written = 0
	for i := range n {
		ended(uint32(i + 2))
		if want := "se:" + lfns[i]; !slices.Equal(e.Remove, []string{want}) {
			t.Fatalf("%v is removed, want %s", e.Remove, want)
		}
		if i%2 == 0 {
			step(Removed{e.Remove[0]})
		}
		if i%97 != 96 {
			continue
		}
		again, _, err := Load(Config{}, s.records())
		if err != nil {
			t.Fatal(err)
		}
		if was, is := c.snapshot(), again.snapshot(); was != is {
			t.Fatalf("after %d a Load makes something else: %s", i+1, firstDifference(was, is))
		}
		fresh, _, _, err := Fresh(s.records())
		if err != nil {
			t.Fatal(err)
		}
		begun := newScript()
		begun.keep(s.records())
		begun.keep(fresh)
		next, _, err := Load(Config{}, begun.records())
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
		step(Removed{"se:" + lfns[i]})
	}
	for _, r := range s.records() {
		if r.Table == TableRemove {
			t.Errorf("the record that removes %s is left", r.Key)
		}
	}
}
