package dispatch

import (
	"fmt"
	"testing"

	"fairway/internal/taskqueue"
)

// A refused Submit leaves none of its files behind: a job that reads one is refused too, until a
// Submit that is taken brings it.
func TestARefusedSubmitAddsNoFiles(t *testing.T) {
	core := withRun(t, taskqueue.Config{})
	there := []taskqueue.ExistingFile{{LFN: "there", PFN: "pfn", Size: 1, Identity: "i"}}
	reads := func(name string, lfns ...string) []taskqueue.Job {
		return []taskqueue.Job{{Name: name, Step: "s", Reads: lfns, Writes: []taskqueue.Output{{LFN: name + ".out"}}}}
	}
	for _, in := range []taskqueue.Submit{
		{Run: 1, Files: there, Jobs: reads("a", "there", "nowhere")},
		{Run: 1, Files: []taskqueue.ExistingFile{there[0], {LFN: "no PFN"}}, Jobs: reads("a", "there")},
		{Run: 1, Jobs: reads("a", "there")},
	} {
		if effects, err := core.Step(epoch, in); err == nil || len(effects.Persist) > 0 {
			t.Errorf("%+v: %v, and records %v", in, err, effects.Persist)
		}
	}
	for _, in := range []taskqueue.Submit{
		{Run: 1, Files: there, Jobs: reads("a", "there")}, {Run: 1, Jobs: reads("b", "there", "a.out")},
	} {
		if _, err := core.Step(epoch, in); err != nil {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// Refuses says what Step says, and changes nothing.
func TestRefusesForetellsStep(t *testing.T) {
	core := withRun(t, taskqueue.Config{})
	job := func(name string, reads ...string) taskqueue.Job {
		return taskqueue.Job{Name: name, Step: "s", Reads: reads, Writes: []taskqueue.Output{{LFN: name + ".out"}}}
	}
	for _, in := range []taskqueue.Submit{
		{Run: 1, Jobs: []taskqueue.Job{job("a"), job("b", "a.out")}},
		{Run: 1, Jobs: []taskqueue.Job{job("c"), job("a")}},
		{Run: 1, Jobs: []taskqueue.Job{job("c"), job("c")}},
		{Run: 1, Jobs: []taskqueue.Job{job("c"), job("d", "nowhere")}},
		{Run: 2, Jobs: []taskqueue.Job{job("c")}},
		{Run: 1, Jobs: []taskqueue.Job{job("c", "b.out")}},
	} {
		foretold := core.Refuses(in)
		again := core.Refuses(in)
		effects, err := core.Step(epoch, in)
		if fmt.Sprint(foretold) != fmt.Sprint(err) || fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%+v: Step says %v, and Refuses said %v and %v", in, err, foretold, again)
		}
		if err == nil && len(effects.Persist) != len(in.Jobs) {
			t.Errorf("%+v: %d records", in, len(effects.Persist))
		}
	}
}
