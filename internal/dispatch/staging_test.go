package dispatch

import (
	"fmt"
	"testing"
	"time"
)

// A job whose outputs could not be stored once is tried again where its input is, as the
// storage element may be to blame, and the second time on another host.
func TestFailedTransferLeavesTheJobAtItsInput(t *testing.T) {
	s := newSharers(t)
	s.sync("a", "h1", "", nil)
	s.has("a", "")
	s.sync("b", "h2", "", nil)
	s.jobs(1)
	now := epoch
	for i, at := range []PilotID{"a", "a", "b"} {
		run, ok := s.ran[at]
		if !ok || len(s.ran) != 1 {
			t.Fatalf("attempt %d: assigned to %v, want %s", i+1, s.ran, at)
		}
		clear(s.ran)
		s.sync(at, "", "", func(m *Sync) {
			m.Ended = []Result{{Job: run.Job, Attempt: run.Attempt, Outcome: StageOutFailed}}
		})
		s.sync("a", "", "", nil) // both wait for news
		s.sync("b", "", "", nil)
		now = now.Add(time.Minute) // the pause before the next attempt
		e, err := s.core.Step(now, Tick{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Replies {
			s.last[r.Pilot] = r.Answer.Number
			for _, a := range r.Answer.Run {
				s.ran[r.Pilot] = a
			}
		}
	}
}

// TestWorkForAnIdlePilotIsBounded counts what is looked at for a pilot that asks in vain. It has
// all inputs but one of each attempt that others stage in, and a look at each allocates. Jobs
// with very many inputs are not looked at at all.
func TestWorkForAnIdlePilotIsBounded(t *testing.T) {
	few, some := lookForStaged(t, maxStaging, 1)
	many, most := lookForStaged(t, 10*maxStaging, 1)
	if few < maxStaging || many > few+1 || some != maxStaging || most != 10*maxStaging {
		t.Errorf("a Sync allocates %v times while %d attempts are staged in, %v while %d are", few, some, many, most)
	}
	if _, n := lookForStaged(t, 2, maxStaging); n != 0 {
		t.Errorf("%d attempts of jobs with more than %d requests are looked at", n, maxStaging)
	}
}

// lookForStaged has attempts staged in, each of which reads so many inputs of its own and a
// common one. It returns how often a Sync of an idle pilot allocates that lacks only the common
// one, and how many attempts are listed.
func lookForStaged(t *testing.T, attempts, inputs int) (allocations float64, listed int) {
	t.Helper()
	c := withRun(t, Config{})
	now, seq, last := epoch, map[PilotID]uint64{}, map[PilotID]uint64{}
	var run []Assignment
	step := func(in Input) {
		e, err := c.Step(now, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Replies {
			last[r.Pilot] = max(last[r.Pilot], r.Answer.Number)
			run = append(run, r.Answer.Run...)
		}
	}
	sync := func(p PilotID, s Sync) {
		seq[p]++
		s.Pilot, s.Seq, s.LastAnswer, s.Hold = p, seq[p], last[p], true
		if s.Full = seq[p] == 1; s.Full {
			s.Hello = &PilotInfo{Host: string(p), CacheSize: 1 << 40}
		}
		step(s)
	}
	files := []ExistingFile{{LFN: "common", PFN: "x", Size: 1}}
	var cached []CachedFile
	for i := range attempts * inputs {
		lfn := fmt.Sprint(i)
		files = append(files, ExistingFile{LFN: lfn, PFN: "x", Size: 1})
		cached = append(cached, CachedFile{File: FileRef{LFN: lfn}, Size: 1})
	}
	step(AddFiles{Run: 1, Files: files})
	for i := range attempts {
		p, reads := PilotID(fmt.Sprint("reads", i)), []string(nil)
		for k := range inputs {
			reads = append(reads, fmt.Sprint(i*inputs+k))
		}
		sync(p, Sync{})
		step(Submit{1, []Job{{Name: string(p), Reads: append(reads, "common"), Writes: []Output{{LFN: "out" + string(p)}}}}})
		sync(p, Sync{})
		sync(p, Sync{Started: []AttemptRef{{Job: run[i].Job, Attempt: run[i].Attempt}}})
	}
	sync("idle", Sync{CacheAdded: cached})
	now = now.Add(time.Second)
	for _, list := range c.fleet.staging {
		listed += len(list)
	}
	if err := c.verify(); err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(10, func() { sync("idle", Sync{}) }), listed
}
