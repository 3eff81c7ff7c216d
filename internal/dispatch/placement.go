package dispatch

import (
	"cmp"
	"time"

	"fairway/internal/dispatch/delay"
	"fairway/internal/dispatch/estimate"
	"fairway/internal/dispatch/fairtree"
	"fairway/internal/eviction"
	"fairway/internal/taskqueue"
)

// placement decides which ready job goes to which pilot, and when none does
// although it could.
//
// Invariants between transitions:
//   - No parked pilot could start a ready job, unless the job is kept for another
//     pilot or site, its user has all that a limit allows, or too many pilots are parked to
//     look at all.
//   - A job is kept for at most one pilot or site, until a time at the latest,
//     and a timer is set for the first of these times.
//   - pilot.seat.reserved and reserved name the same pairs; such a pilot gets nothing
//     else.
//
// Nothing of it is durable.
type placement struct {
	*transition
	shares *shares
	files  *files
	jobs   *jobs
	fleet  *fleet
	rule   delay.Rule

	delayed    delayedJobs
	reserved   map[*job]*pilot // pilots that drain for a job
	gatherings []*gathering    // for gangs, in the order in which they began
	roomOf     []siteRoom      // scratch of roomAt
	expected   map[*job]*pilot // which pilot fetches inputs of ready jobs; pilot.seat.next names the same
	backlog    backlog         // of the pilot that asks
	waits      bool            // it may be given jobs beyond what is free
	roomFor    []int8          // by class, in one recall: 1 a parked pilot has room, -1 none has, 0 not looked up
	offers     uint64          // counts what lets pilots ask again that asked in vain, mostly jobs that became ready
	pulls      uint64          // counts pilots that asked

	// Of one transition: who asked and has room left, and which attempts were given back
	// for others, who was given what became ready. All are empty between transitions.
	roomLeft  []*pilot
	givenBack []*attempt
	placed    []*pilot // were parked, and were given a job that became ready

	tally tally

	// Nothing is in use of these between transitions; they are here for their memory.
	served     []*pilot
	candidates []eviction.NextRead[taskqueue.FileRef]
}

// admission is whether a pilot may be given jobs of a class.
type admission uint8

const (
	never  admission = iota
	onTime           // only jobs that have waited long enough for their own site
	always
)

// matchAll brings ready jobs and pilots together. Jobs and pilots that wait were offered
// everything before, so it looks only at those that are new in this transition. (A pilot whose
// life has become long enough for a job asks again with its next Sync.)
//
//  0. Gangs whose turn it is are given out, or get room kept for them.
//  1. A fresh job goes to a parked pilot that holds more of its input than the pilots that ask.
//  2. Each pilot that asks takes the best job for it.
//  3. The other fresh jobs go to any parked pilot that they fit.
//  4. A parked pilot that was given one asks: if there are more, they may wait there (mayWait).
//  5. Other gangs are given out where there is room for all of one.
//
// Jobs that are kept for a pilot are offered again when it has asked, or is gone, or their time
// is up.
func (pl *placement) matchAll() {
	pl.reviewGatherings()
	for {
		pl.matchFresh()
		pl.placeGangs(true)
		if !pl.mayMatch() {
			return
		}
	}
}

// mayMatch reports whether there are jobs or pilots that were not offered each other.
func (pl *placement) mayMatch() bool {
	w := &pl.work
	return len(w.fresh) > 0 || len(w.askers) > 0 || pl.delayed.due || pl.shares.freed
}

// matchFresh is 1 to 4 of matchAll.
func (pl *placement) matchFresh() {
	w := &pl.work
	for pl.mayMatch() {
		pl.offerFreed()
		pl.placeGangs(false)
		if len(w.askers) > 0 {
			pl.placeFresh(w.askers)
			w.askers, pl.served = pl.served[:0], w.askers
			for _, p := range pl.served {
				p.seat.listedAsker = false
			}
			for _, p := range pl.served {
				pl.pull(p)
				pl.fleet.recount(p)
				pl.noLongerAwaited(p)
				if p.seat.parked > 0 {
					pl.roomLeft = append(pl.roomLeft, p)
				}
			}
		}
		pl.placeFresh(nil)
		for _, j := range w.fresh {
			j.freshly = false
			if j.group != nil {
				pl.offers++
			}
		}
		w.fresh = emptied(w.fresh)
		pl.placedAskAgain()
	}
}

// placedAskAgain has pilots ask again that were given jobs which became ready, if there are more: before
// their next Syncs these may be there already.
func (pl *placement) placedAskAgain() {
	if pl.config.Ahead > 0 && pl.jobs.ready > 0 {
		for _, p := range pl.placed {
			pl.fleet.wantsJobs(p)
		}
	}
	pl.placed = pl.placed[:0]
}

// pull gives the pilot that asks the jobs that suit it best, until it is full
// or nothing fits.
func (pl *placement) pull(p *pilot) {
	if p.seat.reserved != nil && !pl.fleet.takes(p) {
		pl.release(p)
	}
	if !pl.fleet.takes(p) || pl.jobs.ready == 0 || p.seat.askedInVain == pl.offers+1 {
		return
	}
	pl.fillReserved(p)
	if p.seat.reserved != nil {
		return
	}
	pl.pulls++
	pl.tally.level, pl.backlog.pilot = nil, nil
	pl.delayed.some, pl.waits = false, p.seat.gathering == nil
	for {
		j := pl.choose(p)
		if j == nil {
			break
		}
		if p.seat.reserved == j {
			return
		}
		if !pl.mayFill(p, j) {
			j.group.closed = pl.pulls
			continue
		}
		if !p.room.Fits(&j.class.takes, 1) && !pl.mayWait(p, j.effective, p.room.CPUsOf(&j.class.takes)) {
			pl.waits = false // nor one that comes after it
			continue
		}
		a := pl.assign(j, p)
		if pl.backlog.pilot != nil {
			pl.enterBacklog(a)
		}
	}
	if !pl.delayed.some {
		p.seat.askedInVain = pl.offers + 1
	}
}

// fillReserved gives the pilot the job that it drains for, if that fits by now.
func (pl *placement) fillReserved(p *pilot) {
	j := p.seat.reserved
	if j == nil {
		return
	}
	if !pl.fleet.fitsWhole(p, j.class) {
		pl.release(p)
	} else if p.room.Fits(&j.class.takes, 1) && pl.allowed(j, p) {
		pl.assign(j, p)
	}
}

// overdue returns the job of the user that has been passed over for longest, if that is
// too long, it fits the pilot and no other drains for it.
func (pl *placement) overdue(s *share, p *pilot) *job {
	if s.Own.none == pl.pulls {
		return nil
	}
	var best *job
	limit := pl.now.After(-pl.config.MaxPassOver)
	for _, l := range s.Own.levels {
		for _, g := range l.groups {
			j := pl.jobs.oldest(g)
			if j == nil || g.class.gang() || j.readySince > limit || pl.reserved[j] != nil ||
				best != nil && !j.readyBefore(best) {
				continue
			}
			if !pl.fleet.fitsWhole(p, g.class) ||
				p.seat.gathering != nil && !(p.room.Fits(&g.class.takes, 1) && pl.mayFill(p, j)) {
				continue
			}
			if pl.allowed(j, p) {
				best = j
			} else if pl.withinQuota(s, g.class, p, nil) {
				pl.keepPools(j)
			}
		}
	}
	if best == nil {
		s.Own.none = pl.pulls
	}
	return best
}

// keepPools keeps what the job needs of pools from others, until it gets that: it was passed over
// for too long. A pilot that could run it must ask at least each MaxPassOver, or others get it.
func (pl *placement) keepPools(j *job) {
	j.class.pools.Keep(pl.now, j, pl.now.After(pl.config.MaxPassOver))
}

func (j *job) readyBefore(o *job) bool {
	return j.readySince < o.readySince || j.readySince == o.readySince && j.row < o.row
}

// choose returns the ready job that the pilot should run next: that of the user whose turn it is,
// of those who have one, unless a user may overtake (overtakes). One that needs more than is free
// and was passed over for too long reserves the pilot.
func (pl *placement) choose(p *pilot) *job {
	var first *job
	others := 0
	for s := range pl.shares.InOrder {
		j := pl.chooseOf(s, p)
		switch {
		case j == nil:
			continue
		case first == nil:
			first = j
			if pl.shares.Alone() || j == p.seat.reserved || !pl.mayBeOvertaken(j, p) {
				return j
			}
			continue
		case pl.overtakes(j, first, p):
			return j
		}
		if others++; others == maxOvertaking {
			break
		}
	}
	return first
}

// A user whose job has its input in the cache of the pilot that asks may overtake another one
// whose job has not: the first is spared a transfer, and the second may find a pilot that suits
// it better (delay scheduling). Nobody gets ahead of the share by more than Shares.Overtake in this
// way, counted from when both had used what their weights give them; so it evens out.

// maxOvertaking bounds the users that are looked at besides the one whose turn it is.
const maxOvertaking = 8

// mayBeOvertaken reports whether the job, whose turn it is, would have to read input that the pilot
// does not hold, and can wait.
func (pl *placement) mayBeOvertaken(j *job, p *pilot) bool {
	return pl.shares.overtake() > 0 && j.readySince > pl.now.After(-pl.config.MaxPassOver) &&
		pl.fleet.readTime(p, j) >= delay.MinGain
}

// overtakes reports whether the job may be given to the pilot before that of a user whose turn it
// is.
func (pl *placement) overtakes(j, turn *job, p *pilot) bool {
	if pl.saves(p, j) < delay.MinGain {
		return false
	}
	cost := p.room.SlotsOf(&j.class.takes) * pl.fleet.expectedRun(j).Seconds()
	return pl.shares.Ahead(pl.now, j.share(), turn.share())+cost <= pl.shares.overtake().Seconds()
}

// saves is how long it takes elsewhere to read what the pilot holds of the job's input.
func (pl *placement) saves(p *pilot, j *job) time.Duration {
	here, all := &p.launch.site.outlook.reads, &pl.fleet.pace.reads
	each := cmp.Or(here.Storage.Value(), all.Storage.Value())
	var sum float64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && !j.requests[i].streams() && p.reaches(v) {
			sum += float64(v.size) * each
		}
	}
	return estimate.Seconds(sum)
}

func (sh *shares) overtake() time.Duration {
	return cmp.Or(sh.Said().Overtake, taskqueue.DefaultOvertake)
}

// chooseOf returns the job of a user that the pilot should run next, of those that
// are not kept for another: first what was passed over for too long; then of the highest
// priority; of these one that tells whether a node is to blame (suspect); then the one with most
// input in its cache; of these the one that was submitted first, but for some that belong to
// another place (together).
func (pl *placement) chooseOf(s *share, p *pilot) *job {
	if !pl.shares.Alone() && !mayBegin(s, p) {
		return nil
	}
	if j := pl.overdue(s, p); j != nil {
		switch {
		case p.room.Fits(&j.class.takes, 1):
			return j
		case pl.shares.Alone() || !p.room.IsFull(): // of one user, whoever is oldest is next
			p.seat.reserved, pl.reserved[j] = j, p
			return j
		case pl.waits && pl.jobs.ready > pl.fleet.counts.slots && p.room.TakesASlot(&j.class.takes):
			return j
		}
		pl.waits = false // the pilot has nothing free, and is to have
		return nil
	}
	for _, l := range s.Own.levels {
		if !pl.admitGroups(p, l) {
			continue
		}
		if pl.tally.level != l {
			pl.tallyLevel(p, l)
		}
		if j := pl.suspect(l, p); j != nil {
			return j
		}
		if j := pl.bestCached(p); j != nil {
			return j
		}
		if j := pl.firstByRank(l, p); j != nil {
			return j
		}
	}
	return nil
}

// suspect returns a ready job of the level that the pilot may be given and that failed on a node which gets none
// until it is known whether the node or its jobs are to blame: what becomes of the job tells.
func (pl *placement) suspect(l *level, p *pilot) *job {
	for j := range pl.fleet.nodes.Suspects(maxSkipped) {
		if g := j.group; g != nil && g.level == l && g.admission == always && pl.mayFill(p, j) && !pl.keepForOther(j, p) {
			return j
		}
	}
	return nil
}

// mayBegin reports whether no quota forbids that a pilot gets any job of the user.
func mayBegin(s *share, p *pilot) bool {
	return s.Beyond(p.launch.site.Name, fairtree.Amount{Running: 1}, "", fairtree.Amount{}) == nil
}

// admitGroups finds the groups of a level of which the pilot may be given jobs now, and reports whether
// there are some.
func (pl *placement) admitGroups(p *pilot, l *level) bool {
	some := false
	// Jobs wait at a pilot only while there are more of them than all pilots have slots,
	// so that none runs dry meanwhile, if they begin there soon, or if they go before others there.
	waits := pl.waits && pl.mayWait(p, l.priority, 1) && (pl.jobs.ready > pl.fleet.counts.slots ||
		pl.beginsSoon(p, l.priority) || p.outranks(l.groups[0].share, l.priority))
	for _, g := range l.groups {
		g.admission = pl.admits(p, g.class, waits)
		if g.closed == pl.pulls {
			g.admission = never
		}
		if g.admission != never && !pl.shares.Alone() && !pl.withinQuota(g.share, g.class, p, nil) ||
			g.class.pools.Lacks(pl.now, nil, 1, nil) {
			g.admission = never
		}
		some = some || g.admission != never
	}
	return some
}

// admits looks at what the pilot has left; ahead allows Config.Ahead times
// more than it has.
func (pl *placement) admits(p *pilot, cl *class, ahead bool) admission {
	if cl.gang() || !pl.fleet.fitsWhole(p, cl) {
		return never
	}
	if !p.room.Fits(&cl.takes, 1) {
		if !ahead || !p.room.Fits(&cl.takes, int64(1+pl.config.Ahead)) {
			return never
		}
	}
	if k := &cl.key; k.site != "" && k.site != p.info.Site && k.wait > 0 {
		return onTime
	}
	return always
}

// What a pilot is given beyond what is free is bound to it before it can begin. Tiny jobs
// need that, or the pilot would stand still while reports and assignments are on their way;
// others are bound too early by it. So a job waits at a pilot only if it is expected to
// start there within Config.AheadTime, as far as is known how long jobs take that come
// before it: those that run, and those of no lower priority that wait. Nobody knows how
// long a job takes of whose step none has ended.
//
// A pilot is believed as far as it delivers: no more jobs wait there than it has ended
// before, and none is expected to end sooner than the TaskQueue has seen the pilot end others.

// backlog is what comes before a job of one priority at one pilot.
type backlog struct {
	pilot    *pilot // nil: it is to be found out
	priority int32
	cpus     int64   // thousandths of processors that are free within Config.AheadTime
	work     float64 // of these, in seconds of a thousandth, until they are
	waiting  int     // attempts that wait for them beyond what was free
}

// mayWait reports whether a job of the priority that does not fit now may wait at the pilot, if it needs
// so many thousandths of processors.
func (pl *placement) mayWait(p *pilot, priority int32, cpus int64) bool {
	b := pl.backlogOf(p, priority)
	return b.waiting < p.record.delivered && !p.record.withholds && b.cpus >= cpus &&
		b.work <= pl.config.AheadTime.Seconds()*float64(b.cpus)
}

// soon is the part of Config.AheadTime within which a job that waits at a pilot begins sooner than
// most that wait in the TaskQueue for the next Sync of another one: that takes a message there and
// back, and a transaction.
const soon = 20

// beginsSoon reports whether a job of the priority that waits at the pilot is expected to begin so
// soon that no other pilot would begin it earlier.
func (pl *placement) beginsSoon(p *pilot, priority int32) bool {
	b := pl.backlogOf(p, priority)
	return b.cpus > 0 && b.work <= pl.config.AheadTime.Seconds()/soon*float64(b.cpus)
}

// backlogOf is what comes before a job of the priority at the pilot.
func (pl *placement) backlogOf(p *pilot, priority int32) *backlog {
	b := &pl.backlog
	if b.pilot != p || b.priority != priority {
		*b = backlog{pilot: p, priority: priority, cpus: p.room.CPUs()}
		for _, a := range p.attempts {
			pl.enterBacklog(a)
		}
	}
	return b
}

// enterBacklog counts an attempt of the pilot that the backlog is of.
func (pl *placement) enterBacklog(a *attempt) {
	b := &pl.backlog
	if a.leaves() || !a.started && a.priority < b.priority {
		return
	}
	cpus := b.pilot.room.CPUsOf(&a.needs.takes)
	if left, ok := pl.left(a); ok && left <= pl.config.AheadTime {
		b.work += left.Seconds() * float64(cpus)
	} else {
		b.cpus -= cpus
	}
	if a.ahead && !a.started {
		b.waiting++
	}
}

// left is how much longer an attempt is expected to take, from its start if it has not
// started. It is not known of one that should have ended long ago.
func (pl *placement) left(a *attempt) (time.Duration, bool) {
	run := pl.fleet.pace.Of(a.job.step)
	if run == 0 {
		return 0, false
	}
	run = max(run, estimate.Seconds(a.pilot.record.spacing.Value()))
	if !a.started {
		return run, true
	}
	left := run - time.Duration(pl.now-a.since)
	return max(0, left), left >= -pl.config.AheadTime
}

// outranks reports whether a job of the user and the priority would start at the pilot before
// another one of that user which waits there.
func (p *pilot) outranks(s *share, priority int32) bool {
	for _, a := range p.attempts {
		if a.job.share() == s && a.ahead && !a.started && !a.leaves() && a.priority < priority {
			return true
		}
	}
	return false
}

func (pl *placement) firstByRank(l *level, p *pilot) *job {
	var best *job
	for _, g := range l.groups {
		var j *job
		switch g.admission {
		case always:
			j = pl.firstNotKept(g, p)
		case onTime:
			j = pl.jobs.pastSiteWait(g)
		}
		if j != nil && (best == nil || j.row < best.row) {
			best = j
		}
	}
	return best
}

// firstNotKept returns the job of the group of the lowest rank that is not kept
// from the pilot, does not delay a gang for which that is kept, and of which neither the outputs
// belong elsewhere nor another pilot fetches inputs, if there is such a job among the first.
func (pl *placement) firstNotKept(g *group, p *pilot) *job {
	var skipped []uint32
	var first *job // that is not kept
	aside := 0
	j := pl.jobs.first(g)
	for ; j != nil && len(skipped) < maxSkipped && aside < maxAside; j = pl.jobs.first(g) {
		if pl.mayFill(p, j) && !pl.keepForOther(j, p) {
			left := pl.isLeftToAnother(j, p)
			if at := pl.together(j); !left && (at == nil || p.sharesCacheWith(at)) {
				first = nil
				break
			}
			if !left {
				aside++
			}
			if first == nil {
				first = j
			}
		}
		skipped = append(skipped, j.row)
		g.ranks.Pop()
	}
	for _, id := range skipped {
		g.ranks.Push(id)
	}
	if first == nil && j != nil && pl.mayFill(p, j) {
		return j
	}
	return first
}

// isLeftToAnother reports whether another pilot fetches inputs of the job, which that does not share
// with this one.
func (pl *placement) isLeftToAnother(j *job, p *pilot) bool {
	q := pl.expected[j]
	return q != nil && !p.sharesCacheWith(q)
}

// assign makes an attempt of the job on the pilot.
func (pl *placement) assign(j *job, p *pilot) *attempt {
	a := &attempt{
		id: pl.fleet.nextAttempt(), job: j, pilot: p, needs: j.class,
		try: j.tries() + 1, priority: j.effective, ahead: !p.room.Fits(&j.class.takes, 1),
	}
	pl.fleet.assignArrivals(p, j, a)
	pl.unready(j)
	p.copies.hints.incoming += p.lacking(j)
	pl.fleet.addAttempt(a)
	pl.fleet.checkLater(p, pl.now.After(overdueAfter*pl.config.AheadTime))
	if a.ahead {
		pl.fleet.waitAhead(a)
	}
	pl.setAssigned(j)
	pl.fleet.mustAnswer(p)
	return a
}

// nextAttempt numbers an attempt: above all before, of any incarnation.
func (fl *fleet) nextAttempt() taskqueue.AttemptID {
	fl.numbers.lastAttempt++
	return taskqueue.AttemptID(fl.journal.incarnation<<32 | fl.numbers.lastAttempt)
}

// setAssigned takes note that a job has got all its attempts. Its twins wait for what becomes of it.
func (pl *placement) setAssigned(j *job) {
	pl.jobs.setState(j, taskqueue.Assigned)
	for w := &pl.work; len(w.twins) > 0; {
		t := pop(&w.twins)
		pl.setWaiting(t)
		pl.jobs.twins.follow(t)
	}
}

// release lets a pilot take other jobs again.
func (pl *placement) release(p *pilot) {
	delete(pl.reserved, p.seat.reserved)
	p.seat.reserved = nil
	p.seat.askedInVain = 0
	if pl.fleet.takes(p) {
		pl.fleet.wantsJobs(p)
	}
}

// requeue has a job without attempts matched at once.
func (pl *placement) requeue(j *job) {
	if j.live() && j.attempt == nil && j.state != taskqueue.Ready {
		pl.setWaiting(j)
		pl.work.examine = append(pl.work.examine, j)
	}
}

func (pl *placement) setWaiting(j *job) {
	if j.state == taskqueue.Assigned || j.state == taskqueue.Running || j.state == taskqueue.Ready {
		pl.unready(j)
		pl.jobs.setState(j, taskqueue.Waiting)
	}
}

// siteWaitOver offers the jobs of a group to parked pilots of other sites.
func (pl *placement) siteWaitOver(g *group) {
	g.armed = 0
	for {
		j := pl.jobs.pastSiteWait(g)
		if j == nil {
			break
		}
		p := pl.bestParked(j, nil, true)
		if p == nil {
			pl.offers++
			break
		}
		pl.assign(j, p)
	}
	if j := pl.jobs.oldest(g); j != nil {
		at := max(j.readySince.After(g.class.key.wait), pl.now.After(time.Second))
		g.armed = at
		pl.timers.add(timer{at: at, kind: groupTimer, group: g})
	}
}
