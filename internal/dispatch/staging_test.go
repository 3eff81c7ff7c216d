package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
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
	for i, at := range []taskqueue.PilotID{"a", "a", "b"} {
		run, ok := s.ran[at]
		if !ok || len(s.ran) != 1 {
			t.Fatalf("attempt %d: assigned to %v, want %s", i+1, s.ran, at)
		}
		clear(s.ran)
		s.sync(at, "", "", func(m *taskqueue.Sync) {
			m.Ended = []taskqueue.Result{{Job: run.Job, Attempt: run.Attempt, Outcome: taskqueue.StageOutFailed}}
		})
		s.sync("a", "", "", nil) // both wait for news
		s.sync("b", "", "", nil)
		now = now.Add(time.Minute) // the pause before the next attempt
		e, err := s.core.Step(now, taskqueue.Tick{})
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

// TestWorkForAnIdlePilotIsBounded counts the attempts of others that are looked at for a pilot
// that asks in vain. It has all inputs but one of each, and each has been staged in by then: who
// looks at it takes it off the list. Jobs with very many inputs are not listed at all.
func TestWorkForAnIdlePilotIsBounded(t *testing.T) {
	for _, attempts := range []int{maxStaging, 10 * maxStaging} {
		if looked, listed := lookForStaged(t, attempts, 1); looked != maxStaging || listed != attempts {
			t.Errorf("of %d attempts %d are listed, and a Sync looks at %d", attempts, listed, looked)
		}
	}
	if _, n := lookForStaged(t, 2, maxStaging); n != 0 {
		t.Errorf("%d attempts of jobs with more than %d requests are listed", n, maxStaging)
	}
}

// lookForStaged has attempts staged in, each of which reads so many inputs of its own and a
// common one. It returns how many of them a Sync of an idle pilot looks at that lacks only the
// common one, and how many were listed before.
func lookForStaged(t *testing.T, attempts, inputs int) (looked, listed int) {
	t.Helper()
	c := withRun(t, taskqueue.Config{})
	now, seq, last := epoch, map[taskqueue.PilotID]uint64{}, map[taskqueue.PilotID]uint64{}
	var run []taskqueue.Assignment
	step := func(in taskqueue.Input) {
		e, err := c.Step(now, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Replies {
			last[r.Pilot] = max(last[r.Pilot], r.Answer.Number)
			run = append(run, r.Answer.Run...)
		}
	}
	sync := func(p taskqueue.PilotID, s taskqueue.Sync) {
		seq[p]++
		s.Pilot, s.Seq, s.LastAnswer, s.Hold = p, seq[p], last[p], true
		if s.Full = seq[p] == 1; s.Full {
			s.Hello = &taskqueue.PilotInfo{Host: string(p), CacheSize: 1 << 40}
		}
		step(s)
	}
	files := []taskqueue.ExistingFile{{LFN: "common", PFN: "x", Size: 1}}
	var cached []taskqueue.CachedFile
	for i := range attempts * inputs {
		lfn := fmt.Sprint(i)
		files = append(files, taskqueue.ExistingFile{LFN: lfn, PFN: "x", Size: 1})
		cached = append(cached, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: lfn}, Size: 1})
	}
	step(taskqueue.AddFiles{Run: 1, Files: files})
	for i := range attempts {
		p, reads := taskqueue.PilotID(fmt.Sprint("reads", i)), []string(nil)
		for k := range inputs {
			reads = append(reads, fmt.Sprint(i*inputs+k))
		}
		sync(p, taskqueue.Sync{})
		step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{
			Name: string(p), Reads: append(reads, "common"), Writes: []taskqueue.Output{{LFN: "out" + string(p)}},
		}}})
		sync(p, taskqueue.Sync{})
		sync(p, taskqueue.Sync{Started: []taskqueue.AttemptRef{{Job: run[i].Job, Attempt: run[i].Attempt}}})
	}
	sync("idle", taskqueue.Sync{CacheAdded: cached})
	now = now.Add(time.Second)
	count := func() (n int) {
		for _, list := range c.fleet.early.staging {
			n += len(list)
		}
		return n
	}
	listed = count()
	for i := range attempts {
		read := append(slices.Clone(cached[i*inputs:][:inputs]),
			taskqueue.CachedFile{File: taskqueue.FileRef{LFN: "common"}, Size: 1})
		sync(taskqueue.PilotID(fmt.Sprint("reads", i)), taskqueue.Sync{CacheAdded: read})
	}
	sync("idle", taskqueue.Sync{})
	if err := c.verify(); err != nil {
		t.Fatal(err)
	}
	return listed - count(), listed
}
