package state

import (
	"slices"
	"time"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Bounds of a Timeline.
const (
	// TimelineBins is into how many parts of equal length the time is divided, at most.
	TimelineBins = 512
	// TimelineLanes is of how many pilots it is told what each did. Those that come later count in
	// All alone.
	TimelineLanes = 1024
	// TimelineSpans is how many attempts are kept, the last ones that ended.
	TimelineSpans = 2048

	timelineWidth = 10 * time.Millisecond // of the first bins
	timelineAhead = TimelineBins / 8      // bins that are put before the first one at least
)

// Timeline tells what the slots of pilots did when, for people. Its size is bounded whatever a run
// does: when the time is too long for the bins, two of them become one. It belongs to the loop.
type Timeline struct {
	Begin time.Time     // of the first bin; zero: nothing has ended yet
	Width time.Duration // of a bin
	All   Lane
	Lanes map[taskqueue.PilotID]*Lane
	Spans []Span // in no order

	next int // of Spans, which is full, is replaced next
}

// Lane is what one pilot did, or all of them.
type Lane struct {
	From  time.Time // when the pilot was there first, as far as is known
	Until time.Time // when it left; zero: it is there, or left while no server ran
	Last  time.Time // when its last attempt ended

	// In each bin: seconds that attempts staged and computed, and how many of them ended in it. What
	// is beyond the end is zero.
	Staging, Computing []float32
	Ended, Failed      []float32
}

// Clone copies a lane, for those who keep it.
func (l *Lane) Clone() Lane {
	c := *l
	c.Staging, c.Computing = slices.Clone(l.Staging), slices.Clone(l.Computing)
	c.Ended, c.Failed = slices.Clone(l.Ended), slices.Clone(l.Failed)
	return c
}

// Span is an attempt that has ended.
type Span struct {
	Job      taskqueue.JobID
	Attempt  taskqueue.AttemptID
	Pilot    taskqueue.PilotID
	Failed   bool
	StageIn  time.Time // began
	Start    time.Time // of the command; zero: it did not
	End      time.Time // of the command
	StageOut time.Time // ended
}

func (t *Timeline) came(pilot taskqueue.PilotID, at time.Time) {
	if l := t.lane(pilot); l != nil && l.From.IsZero() {
		l.From = at
	}
}

func (t *Timeline) left(pilot taskqueue.PilotID, at time.Time) {
	if l := t.Lanes[pilot]; l != nil {
		l.Until = at
	}
}

func (t *Timeline) lane(pilot taskqueue.PilotID) *Lane {
	l := t.Lanes[pilot]
	if l == nil && len(t.Lanes) < TimelineLanes {
		if t.Lanes == nil {
			t.Lanes = map[taskqueue.PilotID]*Lane{}
		}
		l = &Lane{}
		t.Lanes[pilot] = l
	}
	return l
}

func (t *Timeline) add(job taskqueue.JobID, attempt taskqueue.AttemptID, pilot taskqueue.PilotID, failed bool,
	u *taskqueue.Usage,
) {
	s := Span{
		Job: job, Attempt: attempt, Pilot: pilot, Failed: failed, StageIn: u.StageInStart, Start: u.Start, End: u.End,
		StageOut: u.StageOutEnd,
	}
	if s.StageIn.IsZero() {
		s.StageIn = s.Start
	}
	if s.StageOut.IsZero() {
		s.StageOut = s.End
	}
	if s.StageIn.IsZero() || s.StageOut.Before(s.StageIn) {
		return // it was lost before it began
	}
	if !wire.ClockShows(s.StageIn) || !wire.ClockShows(s.StageOut) {
		return // the bins reach so far, and no farther
	}
	t.cover(s.StageIn, s.StageOut)
	t.keep(s)
	t.All.add(t, &s)
	if l := t.lane(pilot); l != nil {
		l.add(t, &s)
		if l.From.IsZero() || s.StageIn.Before(l.From) {
			l.From = s.StageIn
		}
	}
}

func (t *Timeline) keep(s Span) {
	if len(t.Spans) < TimelineSpans {
		t.Spans = append(t.Spans, s)
		return
	}
	t.Spans[t.next] = s
	t.next = (t.next + 1) % len(t.Spans)
}

// Reach has the bins reach from a time at the latest up to another, so that what runs can be added to
// copies of lanes. Nothing of what the timeline tells is lost. Only the loop may call it.
func (t *Timeline) Reach(begin, now time.Time) {
	if now.After(begin) && (t.Begin.IsZero() || now.After(t.Begin)) && wire.ClockShows(begin) && wire.ClockShows(now) {
		if !t.Begin.IsZero() {
			begin = t.Begin
		}
		t.cover(begin, now)
	}
}

// AddRunning adds an attempt that runs to a copy of a lane of this timeline, which reaches to now.
func (t *Timeline) AddRunning(l *Lane, began, now time.Time) {
	if began.Before(t.Begin) {
		began = t.Begin
	}
	if now.After(wire.LatestClock) {
		now = wire.LatestClock
	}
	if now.Sub(t.Begin)/TimelineBins >= t.Width {
		now = t.Begin.Add(TimelineBins * t.Width)
	}
	t.fill(&l.Computing, began, now)
}

func (t *Timeline) cover(from, to time.Time) {
	if t.Begin.IsZero() {
		t.Begin, t.Width = from, timelineWidth
	}
	ahead := 0
	if from.Before(t.Begin) {
		ahead = max(int((t.Begin.Sub(from)+t.Width-1)/t.Width), timelineAhead)
	}
	begin := t.Begin.Add(-time.Duration(ahead) * t.Width)
	last := to
	if end := t.Begin.Add(time.Duration(len(t.All.Ended)) * t.Width); end.After(last) {
		last = end
	}
	// all bins together may be longer than a Duration
	for ahead > TimelineBins || last.Sub(begin)/TimelineBins >= t.Width {
		t.halve()
		if from.Before(t.Begin) {
			ahead = int((t.Begin.Sub(from) + t.Width - 1) / t.Width)
		}
		begin = t.Begin.Add(-time.Duration(ahead) * t.Width)
	}
	if ahead > 0 {
		t.Begin = begin
		t.each(func(bins []float32) []float32 { return append(make([]float32, ahead), bins...) })
	}
}

func (t *Timeline) halve() {
	t.Width *= 2
	t.each(func(bins []float32) []float32 {
		for i := range bins {
			if i%2 == 0 {
				bins[i/2] = bins[i]
			} else {
				bins[i/2] += bins[i]
			}
		}
		return bins[:(len(bins)+1)/2]
	})
}

func (t *Timeline) each(change func([]float32) []float32) {
	lanes := []*Lane{&t.All}
	for _, l := range t.Lanes {
		lanes = append(lanes, l)
	}
	for _, l := range lanes {
		for _, bins := range []*[]float32{&l.Staging, &l.Computing, &l.Ended, &l.Failed} {
			if len(*bins) > 0 {
				*bins = change(*bins)
			}
		}
	}
}

func (l *Lane) add(t *Timeline, s *Span) {
	if s.Start.IsZero() {
		t.fill(&l.Staging, s.StageIn, s.StageOut)
	} else {
		t.fill(&l.Staging, s.StageIn, s.Start)
		t.fill(&l.Computing, s.Start, s.End)
		t.fill(&l.Staging, s.End, s.StageOut)
	}
	at := t.bin(s.StageOut)
	count(&l.Ended, at)
	if s.Failed {
		count(&l.Failed, at)
	}
	if s.StageOut.After(l.Last) {
		l.Last = s.StageOut
	}
}

func (t *Timeline) bin(at time.Time) int { return int(at.Sub(t.Begin) / t.Width) }

func count(bins *[]float32, at int) {
	*bins = reaching(*bins, at)
	(*bins)[at]++
}

func reaching(bins []float32, at int) []float32 {
	for len(bins) <= at {
		bins = append(bins, 0)
	}
	return bins
}

// fill adds the time between two to the bins that it is in.
func (t *Timeline) fill(bins *[]float32, from, to time.Time) {
	if !to.After(from) {
		return
	}
	for at := t.bin(from); from.Before(to); at++ {
		end := t.Begin.Add(time.Duration(at+1) * t.Width)
		if end.After(to) {
			end = to
		}
		*bins = reaching(*bins, at)
		(*bins)[at] += float32(end.Sub(from).Seconds())
		from = end
	}
}
