package dispatch

import (
	"fmt"
	"runtime"
	"testing"

	"fairway/internal/taskqueue"
)

// TestPilotThatStoresManyFilesIsAnswered counts how often a pilot tells of the files
// that one attempt stores: it repeats what no answer has confirmed.
func TestPilotThatStoresManyFilesIsAnswered(t *testing.T) {
	const files = 5000
	s := newScript()
	s.core, _ = New(taskqueue.Config{})
	seq, last, sent := uint64(0), uint64(0), 0
	var unconfirmed []taskqueue.CachedFile
	sync := func(full bool) {
		t.Helper()
		seq++
		in := taskqueue.Sync{Pilot: "p", Seq: seq, LastAnswer: last, Full: full, Hold: true, CacheAdded: unconfirmed}
		if full {
			in.Hello = &taskqueue.PilotInfo{Host: "h", CacheDir: "/cache", CacheSize: 1 << 40}
		}
		e, err := s.core.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		sent += len(unconfirmed)
		for _, r := range e.Replies {
			if r.Seq == seq {
				last, unconfirmed = r.Answer.Number, nil
			}
		}
	}
	sync(true)
	for i := range files {
		unconfirmed = append(unconfirmed, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: fmt.Sprint(i), Version: 1,
			Tag: 1}, Size: 1})
		sync(false)
	}
	if most := maxUnconfirmed * files; sent > most {
		t.Fatalf("of %d files it told %d times, more than %d", files, sent, most)
	}
}

// TestWorkForOutputsChosenByContentIsLinear counts the bytes of memory and of records
// that one job with many outputs costs, from its commit over their publication to the
// end of a second attempt of it: for four times the outputs about four times as much.
func TestWorkForOutputsChosenByContentIsLinear(t *testing.T) {
	few, fewBytes := workFor(t, 2000)
	many, manyBytes := workFor(t, 8000)
	if many > 6*few || manyBytes > 6*fewBytes {
		t.Fatalf("2000 outputs took %d bytes of memory and %d of records, 8000 took %d and %d", few, fewBytes,
			many, manyBytes)
	}
}

func workFor(t *testing.T, outputs int) (memory uint64, records int) {
	t.Helper()
	c := withRun(t, taskqueue.Config{})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Persist {
			records += len(r.Body)
		}
		return e
	}
	result := func(id taskqueue.AttemptID) taskqueue.Result {
		r := taskqueue.Result{Job: taskqueue.NewJobID(1, 1), Attempt: id}
		for i := range outputs {
			lfn := fmt.Sprintf("part%d", i)
			r.Outputs = append(r.Outputs, taskqueue.WrittenFile{LFN: lfn, Version: 1, PFN: physical(lfn, 1, id), Size: 1})
		}
		return r
	}
	first, second := result(1<<32|1), result(1<<32|2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	step(taskqueue.Submit{
		Run: 1,
		Jobs: []taskqueue.Job{{Name: "split", Step: "split", Digest: "d", Writes: []taskqueue.Output{{LFN: "part*",
			Pattern: true,
			Publish: true}}}},
	})
	e := step(taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{Host: "h"},
		Ended: []taskqueue.Result{first}, Hold: true})
	publish := append([]taskqueue.StoredFile(nil), e.Publish...)
	if len(publish) != outputs {
		t.Fatalf("%d of %d outputs are to be published", len(publish), outputs)
	}
	for _, p := range publish {
		step(taskqueue.Published{File: p.File})
	}
	if e := step(
		taskqueue.Sync{
			Pilot: "p", Seq: 2, LastAnswer: c.journal.incarnation<<32 | c.fleet.numbers.lastAnswer,
			Ended: []taskqueue.Result{second},
			Hold:  true,
		},
	); len(e.Remove) != outputs {
		t.Fatalf("%d of %d files of an attempt that came too late are to be removed", len(e.Remove), outputs)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, records
}
