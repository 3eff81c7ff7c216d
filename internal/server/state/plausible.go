package state

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

const (
	// ClockSlack is how much longer an attempt may say that it took than its job has been known:
	// the clock of its node may have been set meanwhile.
	ClockSlack = time.Minute
	// UnsizedBytes is how much an attempt may say that it read, if the size of an input is not
	// known.
	UnsizedBytes = 1 << 40

	maxProcessors = 4096 // of a node
)

// Plausible cuts what a pilot says that attempts used to what they can have used, so that no
// lie is larger in the sums of a run than the work that was given: each input is read once, what
// is written is what the result names, and no time is longer than the job has been known. A note of the
// result says what was cut of times.
func (c *Cores) Plausible(now time.Time, results []taskqueue.Result) {
	for i := range results {
		r := &results[i]
		u := &r.Usage
		in, ok := c.Dispatch.InputsOf(r.Job)
		if !ok {
			*u = taskqueue.Usage{}
			continue
		}
		left := in.Files
		for _, n := range []*int{&u.CacheHits, &u.CacheMisses} {
			*n = min(*n, left)
			left -= *n
		}
		u.RemoteHits = min(u.RemoteHits, u.CacheHits)
		u.PrefetchHits = min(u.PrefetchHits, u.CacheHits-u.RemoteHits)
		bytes := in.Bytes
		if in.Unsized {
			bytes = UnsizedBytes
		}
		for _, n := range []*int64{&u.BytesCached, &u.BytesStaged} {
			*n = min(*n, bytes)
			bytes -= *n
		}
		u.BytesRemote = min(u.BytesRemote, u.BytesCached)
		u.BytesPrefetched = min(u.BytesPrefetched, u.BytesCached-u.BytesRemote)
		written := int64(0)
		for _, o := range r.Outputs {
			written += o.Size
		}
		u.BytesWritten = min(u.BytesWritten, written)
		if said := plausibleTimes(u, in.Submitted, now); said != "" {
			r.Notes = append(r.Notes, said)
		}
	}
}

// plausibleTimes cuts the times of an attempt, and says so; empty: it did not. Those that its node has by another
// clock than the server become the server's: the last of them is now. A job that was submitted in the
// future says that the server's own clock was set back. Then nothing tells how long it has been known.
func plausibleTimes(u *taskqueue.Usage, submitted, now time.Time) (said string) {
	known := now.Sub(submitted) + ClockSlack
	if now.Before(submitted) {
		known = wire.MaxAttemptTime
	}
	u.StagedAhead = min(u.StagedAhead, known)
	phases := []*time.Time{&u.StageInStart, &u.Start, &u.End, &u.StageOutEnd}
	for i, to := range phases[1:] {
		if from := phases[i]; !to.IsZero() && (from.IsZero() || to.Before(*from)) || !u.Start.IsZero() && u.End.IsZero() {
			u.StageInStart, u.Start, u.End, u.StageOutEnd, u.StagedAhead = time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
			u.CPU = 0
			return "its pilot tells times that come in no order, or not all of them; none is kept"
		}
	}
	phases = slices.DeleteFunc(phases, func(t *time.Time) bool { return t.IsZero() })
	if len(phases) == 0 {
		u.CPU = min(u.CPU, maxProcessors*ClockSlack)
		return ""
	}
	first, last := *phases[0], *phases[len(phases)-1]
	took := last.Sub(first)
	if took > known {
		said = fmt.Sprintf("its pilot tells that it took %v, and the server has known the job for %v: it counts as so long",
			took.Round(time.Second), known.Round(time.Second))
		took, first = known, last.Add(-known)
	}
	if most := took + ClockSlack; most < wire.MaxProcessorTime/maxProcessors {
		u.CPU = min(u.CPU, maxProcessors*most)
	}
	shift := time.Duration(0)
	if !now.Before(submitted) && (last.After(now.Add(ClockSlack)) || first.Before(submitted.Add(-ClockSlack))) {
		shift = now.Sub(last)
	}
	for _, t := range phases {
		if t.Before(first) {
			*t = first
		}
		*t = t.Add(shift)
	}
	return said
}
