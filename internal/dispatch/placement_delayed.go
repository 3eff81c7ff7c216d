package dispatch

import (
	"time"

	"fairway/internal/dispatch/delay"
	"fairway/internal/taskqueue"
)

// maxDelayed bounds the ready jobs that are kept for pilots at a time. A further
// one goes to the first pilot that takes it.
const maxDelayed = 1024

// maxSkipped bounds the kept jobs of a group that are passed over, in the order
// of their ranks, for one pilot that asks. The next one is given to it.
const maxSkipped = 64

// delayedJobs are the ready jobs that some pilot could start and that wait for
// another, which holds more of their input (waitForData of paper 3, section
// IV-E).
type delayedJobs struct {
	jobs  map[uint32]delayed // by row
	some  bool               // a job was kept from the pilot that is asking
	due   bool               // they are to be offered again
	armed instant
}

// delayed is for which pilot or which site a job is kept, and until when.
type delayed struct {
	holder *pilot // nil: for the site
	site   *site
	until  instant
}

// keepForOther reports whether the job, which the pilot could start, is rather kept for
// another, and makes a note of it.
func (pl *placement) keepForOther(j *job, p *pilot) bool {
	if len(pl.delayed.jobs) >= maxDelayed && pl.delayed.jobs[j.row].until == 0 {
		return false
	}
	holder, patience := pl.worthWaitingFor(j, p)
	if holder == nil {
		return pl.keepForSite(j, p)
	}
	pl.endDelay(j)
	holder.seat.awaited++
	pl.addDelay(j, delayed{holder: holder, until: pl.now.After(patience)})
	return true
}

func (pl *placement) addDelay(j *job, k delayed) {
	pl.delayed.jobs[j.row] = k
	pl.delayed.some = true
	pl.armDelays(k.until)
}

// unready takes a job out of the ready jobs, and lets go whoever was
// kept for it.
func (pl *placement) unready(j *job) {
	if pl.jobs.unindex(j) {
		pl.letGo(j)
	}
}

// letGo ends what was kept for jobs: their places with a pilot or a site, pools, and the
// pilots that drained for them.
func (pl *placement) letGo(jobs ...*job) {
	for _, j := range jobs {
		pl.endDelay(j)
		pl.expectNoMore(j)
		if j.class.pools.LetGo(j) {
			pl.shares.freed = true
		}
		if p := pl.reserved[j]; p != nil {
			pl.release(p)
		}
		if gathers := pl.gatheringOf(j); gathers != nil {
			pl.endGathering(gathers)
		}
	}
}

// gatheringOf is what is kept for a job, nil if nothing is.
func (pl *placement) gatheringOf(j *job) *gathering {
	for _, gathers := range pl.gatherings {
		if gathers.job == j {
			return gathers
		}
	}
	return nil
}

func (pl *placement) endDelay(j *job) {
	if k, ok := pl.delayed.jobs[j.row]; ok {
		if k.holder != nil {
			k.holder.seat.awaited--
		} else {
			k.site.outlook.awaited--
		}
		delete(pl.delayed.jobs, j.row)
	}
}

func (pl *placement) armDelays(at instant) {
	if pl.delayed.armed == 0 || at < pl.delayed.armed {
		pl.delayed.armed = at
		pl.timers.add(timer{at: at, kind: delayTimer})
	}
}

// noLongerAwaited is for a pilot that has just got the jobs that suit it best,
// or is gone: those that are still kept for it are looked at again.
func (pl *placement) noLongerAwaited(p *pilot) {
	if p.seat.awaited > 0 {
		pl.delayed.due = true
	}
}

// worthWaitingFor returns a pilot that holds more of the job's input than p,
// and for how long the rule would keep the job for it; nil if there is none.
func (pl *placement) worthWaitingFor(j *job, p *pilot) (*pilot, time.Duration) {
	rule := pl.ruleFor(j.class, p)
	if pl.fleet.counts.between == 0 && !rule.WaitsForBusy() {
		return nil, 0
	}
	x := delay.Prospect{Waited: time.Duration(pl.now - j.readySince), Limit: pl.jobs.waitOf(j.policy.wait)}
	best := x
	best.Idle = true
	best.Saved = pl.fleet.readTime(p, j)
	if rule.Patience(best) <= 0 {
		return nil, 0
	}
	here := pl.weighBy(rule, p, j)
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil || j.requests[i].streams() {
			continue
		}
		for _, q := range v.holders[:min(len(v.holders), maxPlaces)] {
			if q == p || !pl.mayCome(q, j, rule) || pl.weighBy(rule, q, j) <= here {
				continue
			}
			if d := pl.patience(j, p, q, x, rule); d > 0 {
				return q, d
			}
		}
	}
	return nil, 0
}

// mayCome reports whether the pilot, which is not parked, could run the job later.
func (pl *placement) mayCome(q *pilot, j *job, rule delay.Rule) bool {
	if q.seat.parked > 0 || q.seat.reserved != nil || q.seat.gathering != nil || !rule.WaitsForBusy() && !q.seat.between {
		return false
	}
	k := &j.class.key
	return pl.fleet.takes(q) && pl.fleet.fitsWhole(q, j.class) && (k.site == "" || k.site == q.info.Site)
}

// patience asks the rule about a holder, as far as can be told when that will
// be free and whether it will live long enough then.
func (pl *placement) patience(j *job, p, q *pilot, x delay.Prospect, rule delay.Rule) time.Duration {
	free, ok := pl.freeIn(q, j, rule)
	if !ok {
		return 0
	}
	x.Idle, x.Free = len(q.attempts) == 0, free
	x.Saved = pl.fleet.readTime(p, j) - pl.fleet.readTime(q, j)
	end := pl.now.After(free + max(j.class.key.time, pl.fleet.pace.Of(j.step)))
	if q.expires != 0 && end > q.expires {
		return 0
	}
	return rule.Patience(x)
}

// freeIn is when the pilot is expected to take the job: at its next Sync if it
// has room, else when the first of its attempts ends and the jobs that are kept
// for it besides have had their turn. It is not known while more is queued
// there, or nothing tells how long its jobs run.
func (pl *placement) freeIn(q *pilot, j *job, rule delay.Rule) (time.Duration, bool) {
	free := max(0, time.Duration(q.lease.due-pl.now))
	if !q.room.Fits(&j.class.takes, 1) {
		ends, ok := pl.firstEnd(q, j)
		if !ok {
			return 0, false
		}
		free = ends
	}
	if others := q.seat.awaited; others > 0 && pl.delayed.jobs[j.row].holder != q && rule.WaitsForBusy() {
		free += pl.fleet.pace.Of(j.step) * time.Duration(others) / time.Duration(q.room.Slots())
	}
	return free, true
}

// firstEnd is when the first attempt of the pilot is expected to end, whatever
// became of the job itself there.
func (pl *placement) firstEnd(q *pilot, j *job) (time.Duration, bool) {
	soonest := time.Duration(-1)
	for _, a := range q.attempts {
		if a.job == j {
			continue
		}
		run := pl.fleet.pace.Of(a.job.step)
		if a.ahead || !a.started || run == 0 {
			return 0, false
		}
		left := max(0, run-time.Duration(pl.now-a.since))
		if soonest < 0 || left < soonest {
			soonest = left
		}
	}
	return soonest, soonest >= 0
}

// ruleFor is the rule for jobs of a class at a pilot: what the workflow says, else the site, else the
// Config.
func (pl *placement) ruleFor(cl *class, p *pilot) delay.Rule {
	if cl.key.placement != taskqueue.AsConfigured {
		return delay.RuleOf(cl.key.placement)
	}
	if p.launch != nil && p.launch.site != nil && p.launch.site.Placement != taskqueue.AsConfigured {
		return delay.RuleOf(p.launch.site.Placement)
	}
	return pl.rule
}

// weigh returns how much the pilot holds of the job's input, and of its checkpoint.
func (pl *placement) weigh(p *pilot, j *job) int64 { return pl.weighBy(pl.ruleFor(j.class, p), p, j) }

func (pl *placement) weighBy(rule delay.Rule, p *pilot, j *job) int64 {
	var sum int64
	if p.holdsSaved(j) {
		sum = rule.Weight(j.saved().Size)
	}
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			if p.holds(v) {
				sum += rule.Weight(v.size)
			}
		}
	}
	return sum
}
