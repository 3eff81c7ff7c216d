package pilot

import (
	"fmt"
	"sync"
	"time"

	"fairway/internal/cache"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// caching is what changed in the pilot's cache, if it has one. The
// cache's own lock may be held when a change comes in, so this has a mutex of
// its own, under which nothing else is locked.
type caching struct {
	mu      sync.Mutex // guards changes
	changes map[cache.Ref]*fileChange
}

// fileChange is the last thing that happened to a file in the cache.
type fileChange struct {
	cache.Change
	seq uint64 // of the Sync that carried it first, 0 if none did
}

func (p *pilot) openCache() (err error) {
	p.caching.changes = map[cache.Ref]*fileChange{}
	if p.cfg.Cache.Mode == CacheNone {
		return nil
	}
	c := p.cfg.Cache
	p.stage.Cache, err = cache.Open(cache.Config{
		Dir: c.Dir, Name: p.cfg.Pilot, MaxSpace: c.MaxSpace, MinThreshold: c.MinThreshold,
		Shared: c.Mode == CacheHost || c.Mode == CacheGlobal, Changed: p.cacheChanged, Sched: p.sched,
	})
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if c.Mode == CacheHost || c.Mode == CacheGlobal {
		p.hello.CacheDir = p.stage.Cache.Dir()
	}
	if c.Mode == CacheGlobal {
		p.openToOthers()
	}
	p.hello.CacheSize = max(0, c.MaxSpace-c.MinThreshold)
	return nil
}

// openToOthers opens the cache to pilots of other hosts. Where that fails nothing comes from
// them either, and the pilot reads the storage element.
func (p *pilot) openToOthers() {
	s, err := stage.OpenSharing(p.cfg.Line, p.stage)
	if err != nil {
		p.log.Warn("the cache is not shared with other hosts", "error", err)
		return
	}
	p.stage.Sharing = s
	p.hello.ShareAddress, p.hello.SharePin = s.Server.Address(), s.Server.Pin()
	p.log.Info("the cache is shared", "address", s.Server.Address())
}

func (p *pilot) cacheChanged(c cache.Change) {
	p.caching.mu.Lock()
	p.caching.changes[c.Ref] = &fileChange{Change: c}
	p.caching.mu.Unlock()
	p.poke()
}

// news says that there are changes that no Sync has carried.
func (c *caching) news() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range c.changes {
		if change.seq == 0 {
			return true
		}
	}
	return false
}

// carry puts the changes that are not acknowledged into a message.
func (c *caching) carry(m *wire.SyncRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range c.changes {
		if len(m.CacheGone)+len(m.CacheAdded) >= 2*maxCacheTold {
			break
		}
		if change.seq == 0 {
			change.seq = m.GetSeq()
		}
		if change.Gone {
			m.CacheGone = append(m.CacheGone, &wire.CacheGone{File: stage.RefToWire(change.Ref), LastLink: change.LastLink})
		} else {
			m.CacheAdded = append(m.CacheAdded, &wire.CachedFile{File: stage.RefToWire(change.Ref), Size: change.Size, Adler32: change.Sum})
		}
	}
}

func (c *caching) acknowledge(seen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, change := range c.changes {
		if change.seq != 0 && change.seq <= seen {
			delete(c.changes, ref)
		}
	}
}

// maxCacheTold bounds the files in a message. Of others in the cache the TaskQueue
// does not know; changes come in the next one.
const maxCacheTold = 100_000

// cacheContents is the whole state, in place of the changes so far. Removals are
// kept, since the TaskQueue cannot see from the whole that a last link went.
func (p *pilot) cacheContents() (all []*wire.CachedFile) {
	if p.stage.Cache == nil {
		return nil
	}
	c := &p.caching
	c.mu.Lock()
	for ref, change := range c.changes {
		if !change.Gone {
			delete(c.changes, ref)
		}
	}
	c.mu.Unlock()
	for _, f := range p.stage.Cache.Contents() {
		if len(all) == maxCacheTold {
			break
		}
		all = append(all, &wire.CachedFile{File: stage.RefToWire(f.Ref), Size: f.Size, Adler32: f.Sum})
	}
	return all
}

// followAdvice does what an answer says of the cache. The caller does not hold
// the pilot's mutex.
func (p *pilot) followAdvice(a *wire.SyncAnswer) {
	c := p.stage.Cache
	if c == nil {
		return
	}
	if len(a.GetEvict()) > 0 {
		order := make([]cache.Ref, len(a.GetEvict()))
		for i, f := range a.GetEvict() {
			order[i] = stage.RefOf(f)
		}
		c.Advise(order)
	}
	folders := make([]string, len(a.GetPeers()))
	for i, peer := range a.GetPeers() {
		folders[i] = peer.GetCacheDir()
	}
	c.SetPeers(folders)
	p.stage.Sharing.SetKeys(a.GetShareKeys())
	for _, f := range a.GetPrefetch() {
		p.prefetch(f)
	}
}

// maxPrefetch bounds the files that are fetched ahead of their jobs at a time;
// the TaskQueue names what is left over again.
const maxPrefetch = 2

// prefetch has a file brought into the cache, unless enough others are.
func (p *pilot) prefetch(f *wire.InputFile) {
	select {
	case p.prefetching <- struct{}{}:
	default:
		return
	}
	p.workers.Go(func() {
		defer func() { <-p.prefetching }()
		began := time.Now()
		if p.stage.Prefetch(p.jobs, f) {
			p.wasPrefetched(f, began)
		}
	})
}
