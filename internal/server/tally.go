package server

import (
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/wire"
)

// PublishedLimit is how many published names a summary lists.
const PublishedLimit = 20

// tally counts what dispatch doesn't, from events, so that a report costs the
// same however many jobs there are. It belongs to the loop.
type tally struct {
	workflow string   // its name
	order    []string // steps of the workflow
	final    map[string]bool
	finished bool
	sums     sums
	pace     pace
	attempts attempts
	hosts    hosts
	ready    map[dispatch.JobID]time.Time // since when jobs wait for a pilot
	started  map[dispatch.JobID]time.Time // the attempts that run
	pilots   int64                        // that registered

	published map[string]bool // LFNs
	names     []string        // the first of them by name
}

// sums are over all attempts that ended.
type sums struct {
	attempts, hits, misses      int64
	staged, cached, written     int64
	waiting, staging, computing time.Duration
}

func newTally(workflow string, steps []string) *tally {
	return &tally{
		workflow: workflow, order: steps, final: map[string]bool{}, attempts: attempts{}, hosts: hosts{},
		pace: newPace(), ready: map[dispatch.JobID]time.Time{}, started: map[dispatch.JobID]time.Time{}, published: map[string]bool{},
	}
}

// recall takes in the attempts that ended and the files that were published
// before the server started.
func (t *tally) recall(ended, published []dispatch.Record) error {
	var err error
	if t.attempts, err = loadAttempts(ended); err != nil {
		return err
	}
	for _, r := range published {
		t.publish(r.Key)
	}
	for job := range t.attempts {
		details, err := t.attempts.of(job)
		if err != nil {
			return err
		}
		for _, d := range details {
			result := resultFromWire(d.GetResult())
			t.sums.add(&result.Usage)
		}
	}
	return nil
}

// observe takes note of an event.
func (t *tally) observe(e *dispatch.Event) {
	switch e.Kind {
	case dispatch.JobReady:
		t.ready[e.Job] = e.At
	case dispatch.JobStarted:
		t.started[e.Job] = e.At
		if since, known := t.ready[e.Job]; known {
			t.sums.waiting += e.At.Sub(since)
			delete(t.ready, e.Job)
		}
	case dispatch.PilotRegistered:
		t.pilots++
	}
	if e.Result != nil {
		delete(t.started, e.Job)
		t.sums.add(&e.Result.Usage)
		t.pace.add(e)
	}
}

// publish notes that a file stands under its plain name.
func (t *tally) publish(lfn string) {
	if t.published[lfn] {
		return // a later version of it
	}
	t.published[lfn] = true
	at, _ := slices.BinarySearch(t.names, lfn)
	t.names = slices.Insert(t.names, at, lfn)
	t.names = t.names[:min(len(t.names), PublishedLimit)]
}

func (s *sums) add(u *dispatch.Usage) {
	s.attempts++
	s.hits += int64(u.CacheHits)
	s.misses += int64(u.CacheMisses)
	s.staged += u.BytesStaged
	s.cached += u.BytesCached
	s.written += u.BytesWritten
	if !u.Start.IsZero() {
		s.staging += u.Start.Sub(u.StageInStart)
		s.computing += u.End.Sub(u.Start)
	}
	if !u.StageOutEnd.IsZero() {
		s.staging += u.StageOutEnd.Sub(u.End)
	}
}

func (t *tally) noteFlow(e *flow.Effects) {
	for _, step := range e.Final {
		t.final[step] = true
	}
	t.finished = e.Finished
}

// steps reports on each step, in the order of the workflow.
func (t *tally) steps(core *dispatch.Core) []*wire.StepProgress {
	totals := make(map[string]dispatch.Totals, len(t.order))
	for _, name := range t.order {
		totals[name] = dispatch.Totals{}
	}
	names := slices.Clone(t.order)
	for _, s := range core.Steps() {
		if _, listed := totals[s.Step]; !listed {
			names = append(names, s.Step) // of a trace
		}
		totals[s.Step] = s.Totals
	}
	reports := make([]*wire.StepProgress, len(names))
	for i, name := range names {
		reports[i] = stepProgress(name, totals[name], t.finished || t.final[name])
	}
	return reports
}

func stepProgress(name string, totals dispatch.Totals, final bool) *wire.StepProgress {
	count := func(s dispatch.State) int64 { return int64(totals.ByState[s]) }
	return &wire.StepProgress{
		Step:       name,
		Total:      int64(totals.Jobs),
		TotalFinal: final,
		Waiting:    count(dispatch.Waiting),
		Ready:      count(dispatch.Ready),
		Queued:     count(dispatch.Assigned),
		Running:    count(dispatch.Running) + count(dispatch.Committing),
		Done:       count(dispatch.Done),
		Reused:     int64(totals.Reused),
		Failed:     count(dispatch.Failed),
		Blocked:    count(dispatch.Blocked),
		Cancelled:  count(dispatch.Cancelled),
	}
}

// summary is for the end, and for the line below the progress bars.
func (t *tally) summary(core *dispatch.Core) *wire.Summary {
	s := &t.sums
	return &wire.Summary{
		Jobs:             int64(core.Totals().Jobs),
		Attempts:         s.attempts,
		CacheHits:        s.hits,
		CacheMisses:      s.misses,
		BytesStaged:      s.staged,
		BytesCached:      s.cached,
		BytesWritten:     s.written,
		WaitingSeconds:   s.waiting.Seconds(),
		StagingSeconds:   s.staging.Seconds(),
		ComputingSeconds: s.computing.Seconds(),
		Pilots:           t.pilots,
		Published:        slices.Clone(t.names),
		PublishedCount:   int64(len(t.published)),
	}
}
