package state

import (
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/convert"
	"fairway/internal/wire"
)

// PublishedLimit is how many published names a summary lists.
const PublishedLimit = 20

// Tally counts what dispatch doesn't, from events, so that a report costs the
// same however many jobs there are. It belongs to the loop.
type Tally struct {
	Workflow string   // its name
	order    []string // steps of the workflow
	final    map[string]bool
	Finished bool
	Sums     sums
	pace     pace
	Attempts attempts
	Hosts    Hosts
	ready    map[dispatch.JobID]time.Time // since when jobs wait for a pilot
	Started  map[dispatch.JobID]time.Time // the attempts that run
	Pilots   int64                        // that registered

	published map[string]bool // LFNs
	names     []string        // the first of them by name
}

// sums are over all attempts that ended.
type sums struct {
	attempts, hits, misses      int64
	staged, cached, written     int64
	Waiting, staging, computing time.Duration
}

func newTally(workflow string, steps []string) *Tally {
	return &Tally{
		Workflow: workflow, order: steps, final: map[string]bool{}, Attempts: attempts{}, Hosts: Hosts{},
		pace: newPace(), ready: map[dispatch.JobID]time.Time{}, Started: map[dispatch.JobID]time.Time{}, published: map[string]bool{},
	}
}

// recall takes in the attempts that ended and the files that were published
// before the server started.
func (t *Tally) recall(ended, published []dispatch.Record) error {
	var err error
	if t.Attempts, err = LoadAttempts(ended); err != nil {
		return err
	}
	for _, r := range published {
		t.Published(r.Key)
	}
	for job := range t.Attempts {
		details, err := t.Attempts.Of(job)
		if err != nil {
			return err
		}
		for _, d := range details {
			result := convert.ResultFromWire(d.GetResult())
			t.Sums.add(&result.Usage)
		}
	}
	return nil
}

// Observe takes note of an event.
func (t *Tally) Observe(e *dispatch.Event) {
	switch e.Kind {
	case dispatch.JobReady:
		t.ready[e.Job] = e.At
	case dispatch.JobStarted:
		t.Started[e.Job] = e.At
		if since, known := t.ready[e.Job]; known {
			t.Sums.Waiting += e.At.Sub(since)
			delete(t.ready, e.Job)
		}
	case dispatch.PilotRegistered:
		t.Pilots++
	}
	if e.Result != nil {
		delete(t.Started, e.Job)
		t.Sums.add(&e.Result.Usage)
		t.pace.add(e)
	}
}

// Published notes that a file stands under its plain name.
func (t *Tally) Published(lfn string) {
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

// ObserveFlow takes in which steps are complete.
func (t *Tally) ObserveFlow(e *flow.Effects) {
	for _, step := range e.Final {
		t.final[step] = true
	}
	t.Finished = e.Finished
}

// Steps reports on each step, in the order of the workflow.
func (t *Tally) Steps(core *dispatch.Core) []*wire.StepProgress {
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
		reports[i] = stepProgress(name, totals[name], t.Finished || t.final[name])
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

// Summary is for the end, and for the line below the progress bars.
func (t *Tally) Summary(core *dispatch.Core) *wire.Summary {
	s := &t.Sums
	return &wire.Summary{
		Jobs:             int64(core.Totals().Jobs),
		Attempts:         s.attempts,
		CacheHits:        s.hits,
		CacheMisses:      s.misses,
		BytesStaged:      s.staged,
		BytesCached:      s.cached,
		BytesWritten:     s.written,
		WaitingSeconds:   s.Waiting.Seconds(),
		StagingSeconds:   s.staging.Seconds(),
		ComputingSeconds: s.computing.Seconds(),
		Pilots:           t.Pilots,
		Published:        slices.Clone(t.names),
		PublishedCount:   int64(len(t.published)),
	}
}
