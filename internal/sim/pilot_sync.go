package sim

import (
	"slices"
	"time"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// cacheChange is something that the TaskQueue has yet to learn.
type cacheChange struct {
	file taskqueue.FileRef
	size int64
	gone bool
	sent uint64 // the sync that told it first; 0: none yet
}

// unacknowledged is a result that is not durable yet, and the sync that told
// it first.
type unacknowledged struct {
	taskqueue.Result
	sent uint64
}

// sync sends what the TaskQueue does not know yet.
func (p *pilot) sync() {
	if p.dead || p.waitsForThaw(p.sync) {
		return
	}
	p.telling = false
	p.seq++
	m := taskqueue.Sync{Pilot: p.id, Seq: p.seq, LastAnswer: p.answered, Hold: p.site.Ask == 0}
	m.Leaving = p.leaving && len(p.running)+len(p.queue) == 0
	m.Draining = p.leaving
	for _, r := range p.ended {
		m.Ended = append(m.Ended, r.Result)
	}
	for _, a := range p.running {
		m.Started = append(m.Started, a.ref())
		if a.Tasks > 0 {
			m.Members = append(m.Members, a.member())
		}
	}
	if p.known {
		p.changed(&m)
	} else {
		p.whole(&m)
	}
	var in taskqueue.Input = m
	p.run.carry(p, func() { p.run.server.receive(p, in) })
	p.waits = true
	patience := p.run.exp.Network.Patience
	// pilots do not tell again together
	p.wake(p.run.hold + patience + time.Duration(mix(named(string(p.id))^p.seq)%uint64(patience/4+1)))
}

const (
	// maxCacheTold bounds the changes of a cache in one message.
	maxCacheTold = 4096
	// fewCached is up to how many files are told with the whole state, and not by a digest.
	fewCached = 64
)

// changed puts changes of the cache into a message: those that were sent, and further ones
// as far as there is room.
func (p *pilot) changed(m *taskqueue.Sync) {
	m.CacheTold = p.tellRequest
	for i := range p.changes {
		c := &p.changes[i]
		if c.sent == 0 {
			if i >= maxCacheTold {
				m.CacheTold = 0
				return
			}
			c.sent = p.seq
		}
		if c.gone {
			m.CacheGone = append(m.CacheGone, c.file)
		} else {
			m.CacheAdded = append(m.CacheAdded, taskqueue.CachedFile{File: c.file, Size: c.size})
		}
	}
}

// announceAll has all of the cache told anew, and reports whether there is anything to tell.
func (p *pilot) announceAll(request uint64) bool {
	if request == 0 || request == p.tellRequest {
		return false
	}
	p.tellRequest = request
	for _, f := range p.linked {
		p.changes = append(p.changes, cacheChange{file: f, size: p.space.files[f].size})
	}
	return true
}

// whole puts the pilot's whole state into a message.
func (p *pilot) whole(m *taskqueue.Sync) {
	m.Full = true
	m.Hello = p.hello()
	for _, a := range p.queue {
		m.Queued = append(m.Queued, taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace})
	}
	if len(p.linked) > fewCached {
		m.Cache = new(taskqueue.Copies)
		for _, f := range p.linked {
			m.Cache.Add(f.LFN, uint32(f.Version), uint64(f.Tag))
		}
		p.changed(m)
		return
	}
	for i := range p.changes {
		p.changes[i].sent = p.seq
	}
	for _, f := range p.linked {
		m.CacheAdded = append(m.CacheAdded, taskqueue.CachedFile{File: f, Size: p.space.files[f].size})
	}
}

func (p *pilot) hello() *taskqueue.PilotInfo {
	h := &taskqueue.PilotInfo{
		Host: p.slot.host, Site: p.site.Name, Launch: p.slot.launch,
		Has: taskqueue.Resources{MilliCPUs: p.site.milliCPUs()},
	}
	if p.space != nil {
		h.CacheSize = max(int64(p.space.spec.Size-p.space.spec.Spare), 0)
	}
	if p.run.exp.Cache.Share == experiment.HostCache || p.run.exp.Cache.Share == experiment.GlobalCache {
		h.CacheDir = "cache"
	}
	if p.expires > 0 && p.expiry {
		h.Expires = epoch.Add(p.expires)
	}
	return h
}

// resync is what a pilot does that got no answer: it does not know what became
// of its message, and so tells everything.
func (p *pilot) resync() {
	p.known = false
	if p.space != nil {
		p.space.order.Follow(nil, 0)
	}
	p.sync()
}

// acknowledge forgets what the TaskQueue has made durable.
func (p *pilot) acknowledge(seen uint64) {
	p.ended = slices.DeleteFunc(p.ended, func(r unacknowledged) bool { return r.sent <= seen })
	p.changes = slices.DeleteFunc(p.changes, func(c cacheChange) bool { return c.sent != 0 && c.sent <= seen })
}
