package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

// What is not told is counted: a person who reads twenty problems would take them for all.
func TestWhatIsNotToldIsCounted(t *testing.T) {
	e := newEnding()
	for i := range max(ProblemLimit, NoteLimit) + 3 {
		for range 2 {
			if i < ProblemLimit+3 {
				e.Problem(fmt.Sprint("problem ", i%(ProblemLimit+1)))
			}
			if i < NoteLimit {
				e.Note(fmt.Sprint("note ", i))
			}
		}
	}
	if got := e.Problems(); len(got) != ProblemLimit {
		t.Errorf("%d problems are told: %q", len(got), got)
	}
	all := e.AllProblems()
	if len(all) != ProblemLimit+1 || !strings.Contains(all[ProblemLimit], ": 2;") {
		t.Errorf("the end tells %q", all)
	}
	if notes := e.AllNotes(); len(notes) != NoteLimit {
		t.Errorf("the end tells more notes than there are: %q", notes)
	}
}

// People are told of a host that holds other bytes of a file than were told before.
func TestCopiesThatDifferAreNoted(t *testing.T) {
	e := newEnding()
	e.observe(&taskqueue.Event{Kind: taskqueue.CopyDiffers, Host: "node7", Reason: "raw/x"})
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "node7 holds other bytes of raw/x") {
		t.Errorf("%q", notes)
	}
}

func failedEvent(job taskqueue.JobID, why string) *taskqueue.Event {
	return &taskqueue.Event{Kind: taskqueue.JobFailed, Job: job, Name: fmt.Sprint("j", job), Reason: why}
}

// A job has one problem, its last one, and none when it is done after all.
func TestAJobHasOneProblem(t *testing.T) {
	e := newEnding()
	for _, step := range []struct {
		event *taskqueue.Event
		want  string
	}{
		{failedEvent(1, "a"), "job j1 failed: a"},
		{failedEvent(2, "b"), "job j1 failed: a|job j2 failed: b"},
		{failedEvent(1, "\xff"), "job j2 failed: b|job j1 failed: ?"},
		{&taskqueue.Event{Kind: taskqueue.JobCommitted, Job: 3}, "job j2 failed: b|job j1 failed: ?"},
		{&taskqueue.Event{Kind: taskqueue.JobCommitted, Job: 1}, "job j2 failed: b"},
		{&taskqueue.Event{Kind: taskqueue.JobCommitted, Job: 2}, ""},
	} {
		e.observe(step.event)
		if got := strings.Join(e.Problems(), "|"); got != step.want {
			t.Errorf("after %v of job %d: %q", step.event.Kind, step.event.Job, got)
		}
	}
	for i := range ProblemLimit + 2 {
		e.observe(failedEvent(taskqueue.JobID(i+1), "c"))
	}
	for i, last := range []string{": 2;", ": 1;", "j20 "} {
		all := e.AllProblems()
		if got := all[len(all)-1]; !strings.Contains(got, last) {
			t.Errorf("the last of the problems is %q", got)
		}
		e.observe(&taskqueue.Event{Kind: taskqueue.JobCommitted, Job: taskqueue.JobID(ProblemLimit + 2 - i)})
	}
}

func TestNotesOfJobs(t *testing.T) {
	e := newEnding()
	e.observe(&taskqueue.Event{Name: "j", Result: &taskqueue.Result{Notes: []string{"slow", "far"}}})
	e.observe(&taskqueue.Event{Kind: taskqueue.FileLost, Name: "maker", Reason: "x is not there"})
	want := []string{"job j: slow", "job j: far",
		"a stored file is lost, and made again by job maker when it is needed: x is not there"}
	if got := e.Notes(); !slices.Equal(got, want) || e.Problems() != nil {
		t.Errorf("notes %q, problems %q", got, e.Problems())
	}
}

// A run that goes on publishes again what was given up, in the order of the names, and begins to tell anew.
func TestARunThatGoesOnPublishesWhatWasGivenUp(t *testing.T) {
	e := newEnding()
	owe := func(lfn string, version taskqueue.Version) taskqueue.FileRef {
		f := taskqueue.FileRef{LFN: lfn, Version: version}
		e.owedFiles[f] = taskqueue.StoredFile{File: f, PFN: lfn}
		return f
	}
	all := []taskqueue.FileRef{owe("b", 1), owe("a", 10), owe("a", 9), owe("c", 1)}
	if e.Failed() {
		t.Error("a run fails by what it has to publish")
	}
	for _, f := range all[:3] {
		e.giveUp(f, errors.New("no room for "+f.LFN))
	}
	e.giveUp(taskqueue.FileRef{LFN: "unknown"}, errors.New("no room"))
	if !e.Failed() || e.ToPublish() != 1 || len(e.Problems()) != 3 {
		t.Errorf("failed %t, %d files to publish, problems %q", e.Failed(), e.ToPublish(), e.Problems())
	}
	e.Request(false)
	e.asked = true
	e.observe(failedEvent(1, "a"))
	e.Rest()
	if !e.Over() || e.isEnding() || !e.Requested() {
		t.Error("a run that rests is not over")
	}
	var names []string
	for _, f := range e.GoOn() {
		names = append(names, fmt.Sprint(f.File.LFN, f.File.Version))
	}
	if !slices.Equal(names, []string{"a9", "a10", "b1"}) {
		t.Errorf("published again: %q", names)
	}
	if e.Over() || e.Failed() || e.Requested() || e.Asked() || e.Problems() != nil || len(e.GoOn())+len(e.failures) > 0 {
		t.Errorf("what was is not forgotten: %+v", e)
	}
}

// A result that is lost is a problem of a run that ends; of one that goes on it is made again.
func TestLostResults(t *testing.T) {
	for _, c := range []struct {
		phase  phase
		ending bool
		told   int
	}{{running, false, 0}, {draining, true, 1}, {leaving, true, 1}, {over, false, 1}} {
		e := newEnding()
		e.phase = c.phase
		f := taskqueue.FileRef{LFN: "x", Version: 1}
		e.owedFiles[f] = taskqueue.StoredFile{File: f}
		e.lose(&taskqueue.LostFile{File: f, Why: "it is not there"})
		if len(e.Problems()) != c.told || e.ToPublish() != 0 || e.isEnding() != c.ending {
			t.Errorf("in phase %d: %q, %d to publish, ends %t", c.phase, e.Problems(), e.ToPublish(), e.isEnding())
		}
	}
}

func TestARunThatCannotGoOn(t *testing.T) {
	e := newEnding()
	if e.cutsShort() {
		t.Error("a run is cut short from the beginning")
	}
	e.fail(errors.New("no store"))
	if !e.cutsShort() || !e.Failed() || e.Asked() || !slices.Equal(e.Problems(), []string{"no store"}) {
		t.Errorf("cut short %t, failed %t, asked %t, %q", e.cutsShort(), e.Failed(), e.Asked(), e.Problems())
	}
}
