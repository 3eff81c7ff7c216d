package state

import (
	"time"

	"fairway/internal/dispatch"
)

const (
	// ClockSlack is how much longer an attempt may say that it took than its job has been known:
	// the clock of its node may have been set meanwhile.
	ClockSlack = time.Minute
	// UnsizedBytes is how much an attempt may say that it read, if the size of an input is not
	// known.
	UnsizedBytes = 1 << 40
)

// Plausible cuts what a pilot says that attempts used to what they can have used, so that no
// lie is larger in the sums of a run than the work that was given: each input is read once, what
// is written is what the result names, and no time is longer than the job has been known. Times
// that cannot be are left out.
func (c *Cores) Plausible(now time.Time, results []dispatch.Result) {
	for i := range results {
		r := &results[i]
		u := &r.Usage
		in, ok := c.Dispatch.InputsOf(r.Job)
		if !ok {
			*u = dispatch.Usage{}
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
		known := now.Sub(in.Submitted) + ClockSlack
		u.StagedAhead = min(u.StagedAhead, known)
		phases := [...]time.Time{u.StageInStart, u.Start, u.End, u.StageOutEnd}
		for at, to := range phases[1:] {
			from := phases[at]
			if !to.IsZero() && (from.IsZero() || to.Before(from) || to.Sub(from) > known) ||
				!u.Start.IsZero() && u.End.IsZero() {
				u.StageInStart, u.Start, u.End, u.StageOutEnd, u.StagedAhead = time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
			}
		}
	}
}
