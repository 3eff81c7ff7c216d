package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// world stands for server and dispatch: it takes the effects of a Flow,
// refuses what dispatch would refuse, and commits jobs when it is told to.
type world struct {
	t         testing.TB
	w         *workflow.Workflow
	flow      *Flow
	now       time.Time
	records   []taskqueue.Record
	exists    map[string]bool // LFNs with a version or a writer
	jobs      map[string]workflow.NewJob
	submitted []string
	pending   []string // submitted, not committed
	final     []string
	notes     []string
	finished  bool
	wake      time.Time
	// produce gives the files that a job writes under a pattern.
	produce func(job workflow.NewJob, pattern string) []string
	size    func(lfn string) int64
	uses    map[string][]string // LFN to the jobs that use it, in order, with r or w
	known   map[string]bool     // LFNs that no further job reads
	early   int                 // of them, before the last input was closed
}

func newWorld(t testing.TB, text string, set map[string]string) *world {
	t.Helper()
	w, err := workflow.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return newWorldOf(t, w, set)
}

func newWorldOf(t testing.TB, w *workflow.Workflow, set map[string]string) *world {
	t.Helper()
	w, err := w.With(set)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	x := &world{
		t: t, w: w, now: time.Unix(1_700_000_000, 0).UTC(),
		exists: map[string]bool{}, jobs: map[string]workflow.NewJob{}, uses: map[string][]string{}, known: map[string]bool{},
		produce: func(workflow.NewJob, string) []string { return nil },
		size:    func(lfn string) int64 { return int64(len(lfn)) },
	}
	if x.flow, err = New(w); err != nil {
		t.Fatalf("new: %v", err)
	}
	return x
}

func (x *world) step(in Input) Effects {
	x.t.Helper()
	e, err := x.flow.Step(x.now, in)
	if err != nil {
		x.t.Fatalf("step %#v: %v", in, err)
	}
	x.take(e)
	return e
}

func (x *world) take(e Effects) {
	x.t.Helper()
	for _, f := range e.AddFiles {
		x.exists[f.LFN] = true
	}
	for _, j := range e.Submit {
		x.submit(j)
	}
	for _, lfn := range e.ReadersKnown {
		if x.known[lfn] || !x.exists[lfn] {
			x.t.Fatalf("%s: all its readers are known; it was known before: %v; it has a writer: %v", lfn, x.known[lfn],
				x.exists[lfn])
		}
		x.known[lfn] = true
		if slices.ContainsFunc(x.flow.Inputs(), func(in *workflow.DeclaredInput) bool { return !x.flow.Closed(in.Name) }) {
			x.early++
		}
	}
	x.records = append(x.records, e.Persist...)
	x.final = append(x.final, e.Final...)
	x.notes = append(x.notes, e.Notes...)
	x.finished, x.wake = e.Finished, e.WakeAt
}

func (x *world) submit(j workflow.NewJob) {
	x.t.Helper()
	if _, ok := x.jobs[j.Job.Name]; ok {
		x.t.Fatalf("job %s submitted twice", j.Job.Name)
	}
	for _, r := range j.Job.Reads {
		if !x.exists[r] {
			x.t.Fatalf("job %s reads %s, which has neither version nor writer", j.Job.Name, r)
		}
		if x.known[r] {
			x.t.Fatalf("job %s reads %s, all readers of which were known", j.Job.Name, r)
		}
		x.uses[r] = append(x.uses[r], "r "+j.Job.Name)
	}
	for _, o := range j.Job.Writes {
		x.uses[o.LFN] = append(x.uses[o.LFN], "w "+j.Job.Name)
		if !o.Pattern {
			x.exists[o.LFN] = true
		}
	}
	x.jobs[j.Job.Name] = j
	x.submitted = append(x.submitted, j.Job.Name)
	x.pending = append(x.pending, j.Job.Name)
}

func (x *world) arrive(input string, lfns ...string) {
	x.t.Helper()
	files := filesOf(lfns...)
	for i := range files {
		files[i].Size = x.size(files[i].LFN)
	}
	x.step(Arrived{Input: input, Files: files})
}

func filesOf(lfns ...string) []InputFile {
	var files []InputFile
	for _, lfn := range lfns {
		files = append(files, InputFile{
			ExistingFile: taskqueue.ExistingFile{LFN: lfn, PFN: "/data/" + lfn, Size: int64(len(lfn)), Identity: "1"},
		})
	}
	return files
}

func (x *world) close(input string) { x.t.Helper(); x.step(Closed{Input: input}) }

// commit commits a submitted job.
func (x *world) commit(name string) {
	x.t.Helper()
	at := slices.Index(x.pending, name)
	if at < 0 {
		x.t.Fatalf("job %s is not pending; pending are %v", name, x.pending)
	}
	x.pending = slices.Delete(x.pending, at, at+1)
	x.step(Happened{x.event(x.jobs[name])})
}

func (x *world) event(j workflow.NewJob) taskqueue.Event {
	e := taskqueue.Event{Kind: taskqueue.JobCommitted, At: x.now, Name: j.Job.Name, Step: j.Job.Step}
	for _, o := range j.Job.Writes {
		lfns, pattern := []string{o.LFN}, ""
		if o.Pattern {
			lfns, pattern = x.produce(j, o.LFN), o.LFN
		}
		for _, lfn := range lfns {
			x.exists[lfn] = true
			e.Files = append(e.Files, taskqueue.CommittedFile{
				File: taskqueue.FileRef{LFN: lfn}, Pattern: pattern, Size: x.size(lfn),
			})
		}
	}
	return e
}

// commitAll commits, in the given order of choice, until nothing is pending.
func (x *world) commitAll(choose func(n int) int) {
	x.t.Helper()
	for len(x.pending) > 0 {
		x.commit(x.pending[choose(len(x.pending))])
	}
}

func first(int) int { return 0 }

func (x *world) reload() {
	x.t.Helper()
	f, err := Load(x.w, x.records)
	if err != nil {
		x.t.Fatalf("load: %v", err)
	}
	x.flow = f
	if told, want := slices.Sorted(slices.Values(f.ReadersKnown())),
		slices.Sorted(maps.Keys(x.known)); !slices.Equal(told, want) {
		x.t.Fatalf("loaded again, the readers of %q are known, before those of %q", told, want)
	}
}

func (x *world) wantSubmitted(want ...string) {
	x.t.Helper()
	if got := strings.Join(x.submitted, " "); got != strings.Join(want, " ") {
		x.t.Errorf("submitted\n  %s\nwant\n  %s", got, strings.Join(want, " "))
	}
	x.submitted = nil
}

func (x *world) String() string {
	return fmt.Sprintf("pending %v, held %v", x.pending, x.flow.Held(10))
}
