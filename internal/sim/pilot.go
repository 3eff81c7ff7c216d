package sim

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// pilot models the agent on a worker node as internal/pilot is: it sends its
// state, carries out the answer, and sends again when something has changed.
type pilot struct {
	run   *run
	id    taskqueue.PilotID
	site  *site
	slot  *slot
	space *space // nil: keeps nothing
	dead  bool

	frozen   time.Duration // it stands still until then
	unwanted bool          // its launch has ended, and it does not know that

	expires time.Duration // 0: never
	expiry  bool          // whether it tells

	seq      uint64
	answered uint64 // the answer carried out last
	telling  bool   // a sync will be sent at this instant
	known    bool   // the TaskQueue has seen the whole state
	leaving  bool
	waits    bool  // for the answer to its last sync
	timer    alarm // until it speaks again without news

	seen    map[taskqueue.AttemptID]bool
	queue   []taskqueue.Assignment
	running []*attempt
	ended   []unacknowledged

	linked      []taskqueue.FileRef
	changes     []cacheChange
	tellRequest uint64 // to tell all of the cache, since which that is among the changes, or was acknowledged

	fetching int // files that it fetches ahead
}

func (p *pilot) cacheAdded(f taskqueue.FileRef, size int64) {
	p.linked = append(p.linked, f)
	p.changes = append(p.changes, cacheChange{file: f, size: size})
}

func (p *pilot) cacheGone(f taskqueue.FileRef) {
	if i := slices.Index(p.linked, f); i >= 0 {
		p.linked = slices.Delete(p.linked, i, i+1)
	}
	// In one message, what came counts after what went.
	p.changes = slices.DeleteFunc(p.changes, func(c cacheChange) bool { return !c.gone && c.file == f })
	p.changes = append(p.changes, cacheChange{file: f, gone: true})
	p.reportSoon()
}

// reportSoon sends what has changed in the cache: at once where the pilot waits for
// an answer, else when its time to ask comes.
func (p *pilot) reportSoon() {
	if p.site.Ask == 0 && !p.telling && !p.dead {
		p.telling = true
		p.run.after(0, p.sync)
	}
}

// begin registers the pilot.
func (p *pilot) begin() {
	if p.space != nil {
		p.space.join(p)
	}
	p.sync()
}

// wake has the pilot speak in d, unless it is woken for another reason before.
func (p *pilot) wake(d time.Duration) { p.timer.set(p.run.now + d) }

func (p *pilot) speak() {
	if p.waits {
		p.resync()
	} else {
		p.sync()
	}
}

// carryOut brings the pilot to the state that an answer asks for.
func (p *pilot) carryOut(reply *taskqueue.Reply) {
	if p.waitsForThaw(func() { p.carryOut(reply) }) {
		return
	}
	a := &reply.Answer
	if p.dead || a.Superseded || reply.Seq != p.seq || a.Number <= p.answered {
		return
	}
	p.answered, p.waits = a.Number, false
	if a.NeedFull {
		p.known = false
		p.sync()
		return
	}
	p.known = true
	p.acknowledge(a.Seen)
	news := p.announceAll(a.TellCache)
	news = p.end(a.End) || news
	news = p.end(slices.DeleteFunc(slices.Clone(a.GiveBack), p.computes)) || news
	news = p.accept(a.Run) || news
	news = p.beginMembers(a.Begin) || news
	if p.space != nil && len(a.Evict) > 0 {
		p.space.order.Follow(a.Evict, a.Stale)
	}
	p.prefetch(a.Prefetch)
	p.leaving = p.leaving || a.Leave || a.LeaveNow
	if a.LeaveNow {
		p.abort()
	}
	if p.leaving && len(p.running)+len(p.queue) == 0 {
		p.leave()
		return
	}
	p.next(news, a.NextSync)
}

// next decides when the pilot speaks again: at once where it waits for the
// answer, else when it has news or its time to ask has come.
func (p *pilot) next(news bool, heartbeat time.Duration) {
	ask := p.site.Ask
	switch {
	case ask == 0 || news:
		p.sync()
	case len(p.running) > 0:
		p.wake(max(heartbeat, ask))
	default:
		p.wake(ask)
	}
}

// accept queues the attempts that are new, and starts what it can.
func (p *pilot) accept(assigned []taskqueue.Assignment) bool {
	for _, a := range assigned {
		if !p.seen[a.Attempt] && !p.leaving {
			p.seen[a.Attempt] = true
			p.queue = append(p.queue, a)
		}
	}
	return p.startNext()
}

// startNext starts attempts of the queue while the next one fits beside those that compute. The
// next one is that of the highest priority, of these the first.
func (p *pilot) startNext() bool {
	started := false
	for p.startOne() {
		started = true
	}
	return started
}

func (p *pilot) startOne() bool {
	if len(p.queue) == 0 {
		return false
	}
	first := 0
	for i := range p.queue {
		if p.queue[i].Priority > p.queue[first].Priority {
			first = i
		}
	}
	a := p.queue[first]
	if p.cpusOf(&a) > p.freeCPUs() {
		return false
	}
	p.queue = slices.Delete(p.queue, first, first+1)
	p.execute(a)
	return true
}

// cpusOf is what an attempt takes of the pilot, in thousandths of a processor.
func (p *pilot) cpusOf(a *taskqueue.Assignment) int64 {
	return cmp.Or(a.Needs.MilliCPUs, min(oneCPU, p.site.milliCPUs()))
}

// freeCPUs is what those that compute leave.
func (p *pilot) freeCPUs() int64 {
	free := p.site.milliCPUs()
	for _, a := range p.running {
		if !a.yielded {
			free -= p.cpusOf(&a.Assignment)
		}
	}
	return free
}

// yield keeps the outputs of an attempt that has computed, and has the next one begin
// before they are stored, unless those of another one are just being stored.
func (p *pilot) yield(a *attempt) {
	if !p.site.Behind {
		return
	}
	if p.space != nil {
		for _, out := range a.work.writes {
			a.cacheFile(out.FileRef, out.size)
		}
		p.reportSoon()
	}
	if slices.ContainsFunc(p.running, func(b *attempt) bool { return b.yielded }) {
		return
	}
	a.yielded = true
	if p.startNext() {
		p.sync()
	}
}

// end carries out the TaskQueue's request that attempts end. One that has not
// started goes back.
func (p *pilot) end(attempts []taskqueue.AttemptID) bool {
	news := false
	for _, id := range attempts {
		if i := slices.IndexFunc(p.queue, func(a taskqueue.Assignment) bool { return a.Attempt == id }); i >= 0 {
			p.giveBack(p.queue[i], taskqueue.Ended)
			p.queue = slices.Delete(p.queue, i, i+1)
			news = true
		} else if i := slices.IndexFunc(p.running, func(a *attempt) bool { return a.Attempt == id }); i >= 0 {
			p.running[i].stop()
			news = true
		}
	}
	return news
}

// computes reports whether the command of the attempt has begun.
func (p *pilot) computes(id taskqueue.AttemptID) bool {
	return slices.ContainsFunc(p.running, func(a *attempt) bool { return a.Attempt == id && a.begun() })
}

// giveBack tells that an attempt has ended before it started.
func (p *pilot) giveBack(a taskqueue.Assignment, o taskqueue.Outcome) {
	r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: o, Message: "not started", GangPlace: a.GangPlace}
	p.ended = append(p.ended, unacknowledged{r, p.seq + 1})
}

// abort ends everything that runs.
func (p *pilot) abort() {
	p.queue = nil
	for len(p.running) > 0 {
		p.running[0].stop()
	}
}

// leave says good-bye and frees the slot.
func (p *pilot) leave() {
	p.leaving = true
	p.sync()
	p.die()
}

// die is the end of the pilot, with or without a farewell: what it ran is
// lost, and its links go.
func (p *pilot) die() {
	if p.dead {
		return
	}
	p.dead = true
	p.timer.stop()
	p.leaveStrays()
	for _, a := range p.running {
		a.cut()
	}
	p.running, p.queue = nil, nil
	if p.space != nil {
		p.space.leave(p)
		p.run.checkHeld(p.space)
		p.run.checkShrunk(p.space)
	}
	p.site.batch.ended(p.slot)
}
