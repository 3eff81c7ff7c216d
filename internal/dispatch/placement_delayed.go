package dispatch

import (
	"time"

	"fairway/internal/taskqueue"
)

// maxDelayed bounds the ready jobs that are kept for pilots at a time. A further
// one goes to the first pilot that takes it.
const maxDelayed = 1024

// maxSkipped bounds the kept jobs of a group that are passed over, in the order
// of their ranks, for one pilot that asks. The next one is given to it.
const maxSkipped = 64

// kept are the ready jobs that some pilot could start and that wait for
// another, which holds more of their input (waitForData of paper 3, section
// IV-E).
type delayedJobs struct {
	jobs  map[uint32]delay // by row
	some  bool             // a job was kept from the pilot that is asking
	due   bool             // they are to be offered again
	armed instant
}

// delay is for which pilot or which site a job is kept, and until when.
type delay struct {
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
	pl.addDelay(j, delay{holder: holder, until: pl.now.After(patience)})
	return true
}

func (pl *placement) addDelay(j *job, k delay) {
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
		pl.freePools(j)
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

// freePools ends that for a job that is not ready any more.
func (pl *placement) freePools(j *job) {
	for _, x := range j.class.pools {
		if x.pool.keptFor == j {
			x.pool.keptFor = nil
			pl.shares.freed = pl.shares.freed || x.pool.stopped
		}
	}
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
	if pl.fleet.counts.between == 0 && !rule.waitsForBusy() {
		return nil, 0
	}
	x := prospect{waited: time.Duration(pl.now - j.readySince), limit: pl.jobs.waitOf(j.policy.wait)}
	best := x
	best.idle = true
	best.saved = pl.fleet.readTime(p, j)
	if rule.patience(best) <= 0 {
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
func (pl *placement) mayCome(q *pilot, j *job, rule placementRule) bool {
	if q.seat.parked > 0 || q.seat.reserved != nil || q.seat.gathering != nil || !rule.waitsForBusy() && !q.seat.between {
		return false
	}
	k := &j.class.key
	return pl.fleet.takes(q) && pl.fleet.fitsWhole(q, j.class) && (k.site == "" || k.site == q.info.Site)
}

// patience asks the rule about a holder, as far as can be told when that will
// be free and whether it will live long enough then.
func (pl *placement) patience(j *job, p, q *pilot, x prospect, rule placementRule) time.Duration {
	free, ok := pl.freeIn(q, j, rule)
	if !ok {
		return 0
	}
	x.idle, x.free = len(q.attempts) == 0, free
	x.saved = pl.fleet.readTime(p, j) - pl.fleet.readTime(q, j)
	end := pl.now.After(free + max(j.class.key.time, pl.fleet.pace.Of(j.step)))
	if q.expires != 0 && end > q.expires {
		return 0
	}
	return rule.patience(x)
}

// freeIn is when the pilot is expected to take the job: at its next Sync if it
// has room, else when the first of its attempts ends and the jobs that are kept
// for it besides have had their turn. It is not known while more is queued
// there, or nothing tells how long its jobs run.
func (pl *placement) freeIn(q *pilot, j *job, rule placementRule) (time.Duration, bool) {
	free := max(0, time.Duration(q.lease.due-pl.now))
	if !q.hasRoom(j.class, 1) {
		ends, ok := pl.firstEnd(q, j)
		if !ok {
			return 0, false
		}
		free = ends
	}
	if others := q.seat.awaited; others > 0 && pl.delayed.jobs[j.row].holder != q && rule.waitsForBusy() {
		free += pl.fleet.pace.Of(j.step) * time.Duration(others) / time.Duration(q.slots())
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

// placementRule is a rule for matching. It reads nothing but its arguments.
type placementRule interface {
	// weight is what a version of so many bytes in a cache counts.
	weight(size int64) int64
	// waitsForBusy reports whether patience may ever be above 0 for a holder that
	// is not idle.
	waitsForBusy() bool
	// patience is for how much longer to keep a job for a holder; 0: not at all.
	patience(prospect) time.Duration
}

// prospect is a holder, a pilot with more of a job's input in its cache than
// the one that could start the job now.
type prospect struct {
	idle   bool          // it runs nothing
	free   time.Duration // until it is expected to take the job
	saved  time.Duration // by which its cache is expected to shorten the job
	waited time.Duration // since the job became ready
	limit  time.Duration // WaitForData of the job
}

// ruleFor is the rule for jobs of a class at a pilot: what the workflow says, else the site, else the
// Config.
func (pl *placement) ruleFor(cl *class, p *pilot) placementRule {
	if cl.key.placement != taskqueue.AsConfigured {
		return ruleOf(cl.key.placement)
	}
	if p.launch != nil && p.launch.site != nil && p.launch.site.Placement != taskqueue.AsConfigured {
		return ruleOf(p.launch.site.Placement)
	}
	return pl.rule
}

// weigh returns how much the pilot holds of the job's input, and of its checkpoint.
func (pl *placement) weigh(p *pilot, j *job) int64 { return pl.weighBy(pl.ruleFor(j.class, p), p, j) }

func (pl *placement) weighBy(rule placementRule, p *pilot, j *job) int64 {
	var sum int64
	if p.holdsSaved(j) {
		sum = rule.weight(j.saved().Size)
	}
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			if p.holds(v) {
				sum += rule.weight(v.size)
			}
		}
	}
	return sum
}

func ruleOf(p taskqueue.Placement) placementRule {
	switch p {
	case taskqueue.ByFiles:
		return byFiles{}
	case taskqueue.ByBytes:
		return byBytes{}
	}
	return byGain{}
}

type byBytes struct{ forIdle }

func (byBytes) weight(size int64) int64 { return max(size, 1) }

type byFiles struct{ forIdle }

// fileWeight is what a file counts by number: so many bytes, beside jobs and sites that count bytes.
const fileWeight = 1 << 30

func (byFiles) weight(int64) int64 { return fileWeight }

// forIdle is waitForData: a job is kept for an idle pilot that will ask in
// time, never for a busy one.
type forIdle struct{}

func (forIdle) waitsForBusy() bool { return false }

func (forIdle) patience(x prospect) time.Duration {
	if !x.idle || x.waited+x.free > x.limit {
		return 0
	}
	return x.limit - x.waited
}

type byGain struct{}

// minGain is the least gain that is worth keeping a job for: less is lost in
// the exchange of messages.
const minGain = 100 * time.Millisecond

func (byGain) weight(size int64) int64 { return max(size, 1) }

func (byGain) waitsForBusy() bool { return true }

// patience never lets a job wait in all for longer than waiting can save. So it
// ends at most twice as late as it would have, however wrong the estimates are.
func (byGain) patience(x prospect) time.Duration {
	worth := min(x.saved, x.limit)
	if worth < minGain || x.waited+x.free > worth {
		return 0
	}
	return worth - x.waited
}
