package pilot

import (
	"errors"
	"fmt"
	"sync"

	"fairway/internal/access"
	"fairway/internal/cache"
	"fairway/internal/logical"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// caching is what changed in the pilot's cache, if it has one. The
// cache's own lock may be held when a change comes in, so this has a mutex of
// its own, under which nothing else is locked.
type caching struct {
	mu      sync.Mutex // guards what follows
	changes map[cache.Ref]*fileChange
	telling uint64 // the request (SyncAnswer.tell_cache) since which all files of the cache are among the changes, or were acknowledged
}

// fileChange is the last thing that happened to a file in the cache.
type fileChange struct {
	cache.Change
	seq uint64 // of the Sync that carried it first, 0 if none did
}

func (p *pilot) openCache() (err error) {
	p.caching.changes = map[cache.Ref]*fileChange{}
	p.stage.Spared, p.stage.Unsummed = p.cfg.Cache.Spared, p.cfg.Unsummed
	if p.cfg.Cache.Mode == CacheNone {
		return nil
	}
	c := p.cfg.Cache
	p.stage.Cache, err = cache.Open(cache.Config{
		Dir: c.Dir, Name: p.cfg.Pilot, MaxSpace: c.MaxSpace, MinThreshold: c.MinThreshold, Policy: c.Policy,
		Shared: c.Mode == CacheHost || c.Mode == CacheGlobal, Group: c.Group, Changed: p.cacheChanged, Sched: p.sched,
		Log: p.log,
	})
	if errors.Is(err, cache.ErrNoSpace) {
		p.log.Warn("the pilot works without a cache", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if c.Mode == CacheHost || c.Mode == CacheGlobal {
		p.hello.CacheDir = p.stage.Cache.Dir()
	}
	p.stage.Hashed = c.Group
	if c.Mode == CacheGlobal {
		p.openToOthers()
		p.stage.Hashed = p.stage.Hashed || p.stage.Sharing != nil
	}
	p.hello.CacheSize = min(max(0, c.MaxSpace-c.MinThreshold), access.MaxAmount)
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

// carry puts the changes that are not acknowledged into a message: those that one carried
// before, so that an answer to any of them acknowledges all that came before it, and then
// others as far as there is room.
func (c *caching) carry(m *wire.SyncRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := 0
	for _, again := range []bool{true, false} {
		for ref, change := range c.changes {
			switch {
			case (change.seq != 0) != again:
			case !again && len(m.CacheGone)+len(m.CacheAdded) >= maxCacheTold:
				left++
			default:
				if !again {
					change.seq = m.GetSeq()
				}
				change.announce(m, ref)
			}
		}
	}
	if left == 0 {
		m.CacheTold = c.telling
	}
}

func (c *fileChange) announce(m *wire.SyncRequest, ref cache.Ref) {
	if c.Gone {
		m.CacheGone = append(m.CacheGone, &wire.CacheGone{File: stage.RefToWire(ref)})
		return
	}
	m.CacheAdded = append(m.CacheAdded, &wire.CachedFile{
		File: stage.RefToWire(ref), Size: c.Size, Blake3: stage.HashToWire(c.Hash),
	})
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

const (
	// maxCacheTold bounds the files of the cache in a message. The next ones carry the others.
	maxCacheTold = 4096
	// fewCached is up to how many files are told with the whole state, since a digest would
	// hardly be shorter.
	fewCached = 64
)

// tellWhole puts what the cache holds into a message with the whole state: its digest, or
// if there are few files, these in place of the changes so far. Removals are kept, since
// the TaskQueue cannot see from the whole that a last link went.
func (p *pilot) tellWhole(m *wire.SyncRequest) {
	if p.stage.Cache == nil {
		return
	}
	contents := p.stage.Cache.Contents()
	if len(contents) > fewCached {
		var all logical.Copies
		for i := range contents {
			all.Add(contents[i].Ref.LFN, contents[i].Ref.Version, contents[i].Ref.Tag)
		}
		m.Cache = &wire.CacheDigest{Files: all.Files, Sum: all.Sum}
		return
	}
	c := &p.caching
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, change := range c.changes {
		if !change.Gone {
			delete(c.changes, ref)
		}
	}
	for _, f := range contents {
		(&fileChange{Change: f}).announce(m, f.Ref)
	}
}

func (p *pilot) announceAll(request uint64) {
	c := &p.caching
	if request == 0 || p.stage.Cache == nil {
		return
	}
	c.mu.Lock()
	known := c.telling == request
	c.telling = request
	c.mu.Unlock()
	if known {
		return
	}
	contents := p.stage.Cache.Contents() // which has a lock of its own
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range contents {
		if change := c.changes[f.Ref]; change == nil || !change.Gone {
			c.changes[f.Ref] = &fileChange{Change: f}
		}
	}
}

// followHints does what an answer says of the cache. The caller does not hold
// the pilot's mutex.
func (p *pilot) followHints(a *wire.SyncAnswer) {
	c := p.stage.Cache
	if c == nil {
		return
	}
	if len(a.GetEvict()) > 0 {
		order := make([]cache.Ref, len(a.GetEvict()))
		for i, f := range a.GetEvict() {
			order[i] = stage.RefOf(f)
		}
		c.SetHints(order, int(a.GetStale()))
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
		p.stage.Prefetch(p.jobs, f)
	})
}
