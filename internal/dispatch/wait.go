package dispatch

import (
	"maps"
	"slices"
	"time"
)

// maxKept bounds the ready jobs that are kept for pilots at a time. A further
// one goes to the first pilot that takes it.
const maxKept = 1024

// maxSkipped bounds the kept jobs of a group that are passed over, in the order
// of their ranks, for one pilot that asks. The next one is given to it.
const maxSkipped = 64

// kept are the ready jobs that some pilot could start and that wait for
// another, which holds more of their input (waitForData of paper 3, section
// IV-E).
type kept struct {
	jobs  map[JobID]keeping
	some  bool // a job was kept from the pilot that is asking
	look  bool // they are to be offered again
	armed instant
}

// keeping is for which pilot or which site a job is kept, and until when.
type keeping struct {
	holder *pilot // nil: for the site
	site   *site
	until  instant
}

// keepBack reports whether the job, which the pilot could start, is rather kept for
// another, and makes a note of it.
func (c *Core) keepBack(j *job, p *pilot) bool {
	if len(c.kept.jobs) >= maxKept && c.kept.jobs[j.id].until == 0 {
		return false
	}
	holder, patience := c.worthWaitingFor(j, p)
	if holder == nil {
		return c.keepForSite(j, p)
	}
	c.unkeep(j)
	holder.awaited++
	c.noteKept(j, keeping{holder: holder, until: c.now.after(patience)})
	return true
}

func (c *Core) noteKept(j *job, k keeping) {
	c.kept.jobs[j.id] = k
	c.kept.some = true
	c.armKept(k.until)
}

func (c *Core) unkeep(j *job) {
	if k, is := c.kept.jobs[j.id]; is {
		if k.holder != nil {
			k.holder.awaited--
		} else {
			k.site.outlook.awaited--
		}
		delete(c.kept.jobs, j.id)
	}
}

func (c *Core) armKept(at instant) {
	if c.kept.armed == 0 || at < c.kept.armed {
		c.kept.armed = at
		c.timers.add(timer{at: at, kind: keptTimer})
	}
}

// noLongerAwaited is for a pilot that has just got the jobs that suit it best,
// or is gone: those that are still kept for it are looked at again.
func (c *Core) noLongerAwaited(p *pilot) {
	if p.awaited > 0 {
		c.kept.look = true
	}
}

// placeKept offers the kept jobs to the parked pilots again. One that no parked
// pilot takes is there for those that ask.
func (c *Core) placeKept() {
	if !c.kept.look {
		return
	}
	c.kept.look = false
	for _, id := range slices.Sorted(maps.Keys(c.kept.jobs)) {
		j := c.queue.at(id)
		c.kept.some = false
		if p := c.bestParked(j, nil, true); p != nil {
			c.assign(j, p)
		} else if !c.kept.some {
			c.unkeep(j)
		}
	}
}

// firstNotKept returns the job of the group of the lowest rank that is not kept
// from the pilot.
func (c *Core) firstNotKept(g *group, p *pilot) *job {
	var skipped []uint32
	j := c.queue.first(g)
	for ; j != nil && len(skipped) < maxSkipped && c.keepBack(j, p); j = c.queue.first(g) {
		skipped = append(skipped, uint32(j.id))
		g.ranks.Pop()
	}
	for _, id := range skipped {
		g.ranks.Push(id)
	}
	return j
}

// worthWaitingFor returns a pilot that holds more of the job's input than p,
// and for how long the rule would keep the job for it; nil if there is none.
func (c *Core) worthWaitingFor(j *job, p *pilot) (*pilot, time.Duration) {
	if c.fleet.between == 0 && !c.rule.waitsForBusy() {
		return nil, 0
	}
	x := prospect{waited: time.Duration(c.now - j.readySince), limit: c.queue.waitOf(j.policy.wait)}
	best := x
	best.idle = true
	if c.fleet.pace.transfer.weight > 0 {
		best.saved = c.fleet.pace.transferOf(p.lacking(j))
	}
	if c.rule.patience(best) <= 0 {
		return nil, 0
	}
	here := c.weigh(p, j)
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil {
			continue
		}
		for _, q := range v.holders[:min(len(v.holders), maxPlaces)] {
			if q == p || !c.mayCome(q, j) || c.weigh(q, j) <= here {
				continue
			}
			if d := c.patience(j, p, q, x); d > 0 {
				return q, d
			}
		}
	}
	return nil, 0
}

// mayCome says whether the pilot, which is not parked, could run the job later.
func (c *Core) mayCome(q *pilot, j *job) bool {
	if q.parked > 0 || q.reserved != nil || !c.rule.waitsForBusy() && !q.between {
		return false
	}
	k := &j.class.key
	return c.fleet.takes(q) && c.fleet.fitsWhole(q, j.class) && (k.site == "" || k.site == q.info.Site)
}

// patience asks the rule about a holder, as far as can be told when that will
// be free and whether it will live long enough then.
func (c *Core) patience(j *job, p, q *pilot, x prospect) time.Duration {
	free, known := c.freeIn(q, j)
	if !known {
		return 0
	}
	x.idle, x.free = len(q.attempts) == 0, free
	x.saved = c.fleet.pace.transferOf(p.lacking(j) - q.lacking(j))
	end := c.now.after(free + max(j.class.key.time, c.fleet.pace.runOf(j)))
	if !q.info.Expires.IsZero() && end > toInstant(q.info.Expires) {
		return 0
	}
	return c.rule.patience(x)
}

// lacking is how many bytes of the job's input the pilot would have to read
// from storage.
func (p *pilot) lacking(j *job) int64 {
	var sum int64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			if !p.reaches(v) {
				sum += v.size
			}
		}
	}
	return sum
}

// reaches says whether the pilot can read the version from its own cache, or
// from that of another on its host. Of many holders it looks at the first
// maxPlaces.
func (p *pilot) reaches(v *version) bool {
	if held := p.holds(v); held || p.info.CacheDir == "" {
		return held
	}
	return slices.ContainsFunc(v.holders[:min(len(v.holders), maxPlaces)], func(q *pilot) bool {
		return q.host == p.host && q.info.CacheDir != ""
	})
}

// freeIn is when the pilot is expected to take the job: at its next Sync if it
// has room, else when the first of its attempts ends and the jobs that are kept
// for it besides have had their turn. It is not known while more is queued
// there, or nothing tells how long its jobs run.
func (c *Core) freeIn(q *pilot, j *job) (time.Duration, bool) {
	free := max(0, time.Duration(q.due-c.now))
	if !q.room(j.class, 1) {
		ends, known := c.firstEnd(q, j)
		if !known {
			return 0, false
		}
		free = ends
	}
	if others := q.awaited; others > 0 && c.kept.jobs[j.id].holder != q && c.rule.waitsForBusy() {
		free += c.fleet.pace.runOf(j) * time.Duration(others) / time.Duration(q.slots())
	}
	return free, true
}

// firstEnd is when the first attempt of the pilot is expected to end, whatever
// became of the job itself there.
func (c *Core) firstEnd(q *pilot, j *job) (time.Duration, bool) {
	soonest := time.Duration(-1)
	for _, a := range q.attempts {
		if a.job == j {
			continue
		}
		run := c.fleet.pace.runOf(a.job)
		if a.ahead || !a.started || run == 0 {
			return 0, false
		}
		left := max(0, run-time.Duration(c.now-a.since))
		if soonest < 0 || left < soonest {
			soonest = left
		}
	}
	return soonest, soonest >= 0
}
