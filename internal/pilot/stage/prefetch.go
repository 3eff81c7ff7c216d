package stage

import (
	"context"
	"sync/atomic"
	"time"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// prefetched counts all files that were prefetched, since the start of the pilot. Which of
// them nobody has read yet the cache knows, for all pilots of the host (cache.MarkAhead).
type prefetched struct{ files, bytes atomic.Int64 }

// Prefetch brings a file into the cache for a job that will come. If that fails the job will
// say so.
func (ar *Area) Prefetch(ctx context.Context, f *wire.InputFile) {
	i := newInput(f)
	i.ahead = true
	ar.atSite(ctx, i)
	if ar.bring(ctx, i) != nil || i.cached == nil {
		return
	}
	if !i.hit {
		ar.prefetched.files.Add(1)
		ar.prefetched.bytes.Add(i.Size)
	}
	i.cached.Release()
}

// fetchedAhead is a file that an attempt is the first to read.
type fetchedAhead struct {
	began time.Time
	took  time.Duration
}

// Ahead is how long the files that the attempt has read first were fetched before its turn:
// of such a time nobody has waited.
func (in *Inputs) Ahead(turn time.Time) (sum time.Duration) {
	for _, f := range in.ahead {
		sum += max(0, min(f.took, turn.Sub(f.began)))
	}
	return sum
}

// CacheCounts are what was done to the cache since the start of the pilot; nil if nothing
// was. It waits neither for the disk nor for the cache.
func (ar *Area) CacheCounts() *wire.CacheCounts {
	if ar.Cache == nil {
		return nil
	}
	c := new(wire.CacheCounts)
	c.EvictedFiles, c.EvictedBytes = ar.Cache.Evicted()
	c.PrefetchedFiles, c.PrefetchedBytes = ar.prefetched.files.Load(), ar.prefetched.bytes.Load()
	if c.EvictedFiles+c.PrefetchedFiles == 0 {
		return nil
	}
	for _, n := range []*int64{&c.EvictedBytes, &c.PrefetchedBytes} {
		*n = min(*n, access.MaxAmount)
	}
	return c
}
