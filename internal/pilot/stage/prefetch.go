package stage

import (
	"context"
	"sync"

	"fairway/internal/cache"
	"fairway/internal/wire"
)

// prefetched knows which files were prefetched. Any goroutine may call its methods.
type prefetched struct {
	mu sync.Mutex // guards what follows; nothing is locked under it

	// unread are those that are in the cache, or come there, and that no attempt has
	// read since.
	unread map[cache.Ref]bool

	// All that came, since the start of the pilot.
	files, bytes int64
}

// Prefetch brings a file into the cache for a job that will come, and reports whether it
// is there. If that fails the job will say so.
func (ar *Area) Prefetch(ctx context.Context, f *wire.InputFile) bool {
	i, a := newInput(f), &ar.prefetched
	mine := a.expect(i.Ref) // before it comes: a job may wait for it already
	err := ar.bring(ctx, i)
	there := err == nil && i.cached != nil
	switch {
	case there && !i.hit:
		a.mu.Lock()
		a.files++
		a.bytes += i.Size
		a.mu.Unlock()
	case mine:
		a.forget(i.Ref)
	}
	if there {
		i.cached.Release()
	}
	return there
}

// expect notes a file that is to come, and reports whether it was not noted already.
func (a *prefetched) expect(ref cache.Ref) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unread[ref] {
		return false
	}
	if a.unread == nil {
		a.unread = map[cache.Ref]bool{}
	}
	a.unread[ref] = true
	return true
}

// forget is for a file that is read now or has gone, and reports whether it was prefetched
// and not read before.
func (a *prefetched) forget(ref cache.Ref) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.unread[ref]
	delete(a.unread, ref)
	return was
}

// Gone notes that a file has left the cache. The cache may call it.
func (ar *Area) Gone(ref cache.Ref) { ar.prefetched.forget(ref) }

// CacheCounts are what was done to the cache since the start of the pilot; nil if nothing
// was. It waits neither for the disk nor for the cache.
func (ar *Area) CacheCounts() *wire.CacheCounts {
	if ar.Cache == nil {
		return nil
	}
	c := new(wire.CacheCounts)
	c.EvictedFiles, c.EvictedBytes = ar.Cache.Evicted()
	ar.prefetched.mu.Lock()
	c.PrefetchedFiles, c.PrefetchedBytes = ar.prefetched.files, ar.prefetched.bytes
	ar.prefetched.mu.Unlock()
	if c.EvictedFiles+c.PrefetchedFiles == 0 {
		return nil
	}
	return c
}
