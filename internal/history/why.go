package history

import (
	"slices"
	"time"
)

// Cause is what a part of the time of a run was spent on.
type Cause string

// The causes, in the order of the way of a job.
const (
	Making    Cause = "making jobs"        // until the job was submitted, and its files could be read
	NoPilot   Cause = "batch system"       // it was ready, and the pilot that ran it was not there
	NoSlot    Cause = "waiting for a slot" // it was ready, and its pilot had other jobs
	Retrying  Cause = "failed attempts"    // that came before, and the pauses after them
	Staging   Cause = "staging files"
	Computing Cause = "computing"
)

// Causes are all of them.
var Causes = []Cause{Computing, Staging, NoSlot, NoPilot, Retrying, Making}

// Part is a piece of the time of a run.
type Part struct {
	Cause    Cause
	From, To time.Time
	Job      *Job
}

// Why is what set the time of a run: the jobs of the critical path, the first one first, and what
// each part of the time was spent on. The parts are side by side and fill the time.
type Why struct {
	Begin, End time.Time
	Path       []*Job
	Parts      []Part
	Times      map[Cause]time.Duration
	Steps      []StepTime // of the path, the longest first
	// Slots is how many attempts computed side by side on average, and Most at most.
	Slots float64
	Most  int
	// Work is what all attempts staged and computed.
	Work time.Duration
}

// StepTime is how much of the time of a run was spent on jobs of a step.
type StepTime struct {
	Step string
	Time time.Duration
	Jobs int // on the path
}

// Explain finds what set the time of a run. It goes from the job that ended last to what it waited
// for: the job before whose file came last, and so on. Nil: nothing was executed.
//
// What a job waited for before it began is told by the pilot that ran it: if that had other attempts
// meanwhile, the job waited for a slot; if this was the first one of it, for the batch system.
func (r *Run) Explain() *Why {
	w := &Why{Times: map[Cause]time.Duration{}}
	w.Begin, w.End = r.Bounds()
	byID := make(map[uint32]*Job, len(r.Jobs))
	var last *Job
	for i := range r.Jobs {
		j := &r.Jobs[i]
		byID[j.ID] = j
		if a := j.Last(); a != nil && (last == nil || a.Ended().After(last.Last().Ended())) {
			last = j
		}
	}
	if last == nil {
		return nil
	}
	pilots := r.attemptsByPilot()
	for j := last; j != nil; {
		before := latest(byID, j)
		ready := w.Begin
		if before != nil {
			ready = before.Last().Ended()
		}
		w.Path = append(w.Path, j)
		w.Parts = append(w.Parts, w.partsOf(j, ready, pilots)...) // backwards
		j = before
	}
	slices.Reverse(w.Path)
	slices.Reverse(w.Parts)
	w.sum()
	w.measure(pilots)
	return w
}

// latest is the job whose files came last of those that a job reads; nil: none was executed, or
// its end is not before the begin of the job.
func latest(byID map[uint32]*Job, j *Job) (last *Job) {
	begin := j.Last().Begin()
	for _, id := range j.After {
		b := byID[id]
		if b == nil || b.Last() == nil || b == j || b.Last().Ended().After(begin) {
			continue
		}
		if last == nil || b.Last().Ended().After(last.Last().Ended()) {
			last = b
		}
	}
	return last
}

// partsOf divides the time of a job on the path since its files were there, the last part first.
func (w *Why) partsOf(j *Job, since time.Time, pilots map[string][]placed) (parts []Part) {
	a := j.Last()
	end := a.Ended()
	if len(w.Parts) > 0 { // until the next job could begin
		end = w.Parts[len(w.Parts)-1].From
	}
	add := func(cause Cause, from time.Time) {
		if from.Before(since) {
			from = since
		}
		if from.Before(end) {
			parts = append(parts, Part{cause, from, end, j})
			end = from
		}
	}
	if a.Start.IsZero() {
		add(Staging, a.Begin())
	} else {
		add(Staging, a.End)
		add(Computing, a.Start)
		add(Staging, a.Begin())
	}
	for i := range slices.Backward(j.Attempts) {
		if before := &j.Attempts[i]; before != a && !before.Begin().IsZero() && before.Begin().Before(end) {
			add(Retrying, before.Begin())
		}
	}
	cause := NoPilot
	first := pilots[j.Attempts[0].Pilot]
	if len(first) > 0 && first[0].job != j {
		cause = NoSlot
	}
	if ready := j.Submitted; ready.After(since) {
		add(cause, ready)
		add(Making, since)
	} else {
		add(cause, since)
	}
	return parts
}

func (w *Why) sum() {
	steps := map[string]*StepTime{}
	for _, p := range w.Parts {
		w.Times[p.Cause] += p.To.Sub(p.From)
		if steps[p.Job.Step] == nil {
			steps[p.Job.Step] = &StepTime{Step: p.Job.Step}
		}
		steps[p.Job.Step].Time += p.To.Sub(p.From)
	}
	for _, j := range w.Path {
		if s := steps[j.Step]; s != nil {
			s.Jobs++
		}
	}
	for _, s := range steps {
		w.Steps = append(w.Steps, *s)
	}
	slices.SortFunc(w.Steps, func(a, b StepTime) int {
		if a.Time != b.Time {
			return int(b.Time - a.Time)
		}
		return slices.Compare([]string{a.Step}, []string{b.Step})
	})
}

// measure tells how many attempts computed side by side.
func (w *Why) measure(pilots map[string][]placed) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	var computed time.Duration
	for _, list := range pilots {
		for _, p := range list {
			w.Work += p.attempt.Ended().Sub(p.attempt.Begin())
			// What is staged ahead waits for its slot, and one that stores its outputs has given its slot away.
			if from, to := p.attempt.Start, p.attempt.End; !from.IsZero() && to.After(from) {
				computed += to.Sub(from)
				changes = append(changes, change{from, 1}, change{to, -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	now := 0
	for _, c := range changes {
		now += c.by
		w.Most = max(w.Most, now)
	}
	if span := w.End.Sub(w.Begin); span > 0 {
		w.Slots = computed.Seconds() / span.Seconds()
	}
}
