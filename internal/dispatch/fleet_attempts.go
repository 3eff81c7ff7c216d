package dispatch

import (
	"slices"
	"time"

	"fairway/internal/dispatch/pools"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// attempt is an assignment that has not ended. It lives from the assignment, or
// from the Sync that named it after a restart, until its result arrives, its
// pilot is lost, or the pilot confirms that it never had it.
type attempt struct {
	id    taskqueue.AttemptID
	job   *job
	pilot *pilot
	next  *attempt // of the same job
	needs *class

	told toldAttempt // what its pilot knows of it

	// While it may be asked back for a pilot that has its input: an input that its pilot lacked
	// at the start, and the index in fleet.staging of that; else nil.
	lacks  *version
	listed int32

	// What the pilot said of it.
	try      int
	priority int32   // by which it takes its turn at the pilot
	given    instant // when it was assigned
	since    instant // when it was known to run
	moved    instant // when it was known last to read inputs or store outputs, if it may run for a limited time only
	started  bool
	adopted  bool // the pilot reported it in its whole state
	ahead    bool // beyond what was free

	cost attemptCost // what its user is charged

	// As a member of a gang, which is nil where it is none.
	gang  *gang
	task  int
	begun bool // its pilot has told that it knows the others

	took time.Duration // as its pilot measured; 0 before it has ended

	doubts *node // of its node, when it was given out and attempts failed there; nil: none did
}

// toldAttempt is what a pilot has been told of an attempt. It is said again in each answer until
// the pilot has acknowledged one with that number.
type toldAttempt struct {
	number    uint64  // of the answer that carried it first, 0 if none did
	endNumber uint64  // of the answer that ended it first, or asked for it back
	ended     bool    // the pilot is told to end it
	asked     instant // when the pilot was asked to give it back, unless its command has begun; 0: it was not
	taker     *pilot  // for whom, if that is said
	recall    bool    // only because another pilot could run it now
}

// attemptCost is what the user of a run is charged for an attempt.
type attemptCost struct {
	slots  float64           // that it takes of its pilot; 0: it is not charged
	cpus   int64             // thousandths of processors
	charge float64           // slot-seconds that it was expected to take when it was given out
	pools  pools.Needs[*job] // what it was granted
}

// leaves reports whether the attempt is to end before it has run.
func (a *attempt) leaves() bool { return a.told.ended || a.told.asked != 0 && !a.started }

// known reports whether the pilot itself has reported the attempt.
func (a *attempt) known() bool { return a.started || a.adopted }

// fitsWhole reports whether the pilot could run the class if it ran nothing
// else.
func (fl *fleet) fitsWhole(p *pilot, cl *class) bool {
	k := &cl.key
	switch {
	case !p.fits(cl):
		return false
	case k.bound() && p.cache() != cacheID{k.host, k.pilot}:
		return false
	case k.avoid != "" && k.avoid == p.info.Node() && fl.elsewhere(cl, k.avoid):
		return false
	case p.host.health != nil && fl.withholds(p.host.health) && fl.elsewhere(cl, p.host.name):
		return false
	}
	return fl.outlives(p, cl)
}

// outlives reports whether the pilot is there for long enough to run an attempt of the class.
// Where the pilot never had the time to read and store files besides, as it took before, only the
// command counts: perhaps no pilot has, and a job that is tried may end sooner.
func (fl *fleet) outlives(p *pilot, cl *class) bool {
	if p.expires == 0 {
		return true
	}
	needs := cl.key.time
	if all := cl.inAll(); needs > 0 && all <= p.life {
		needs = all
	}
	return fl.now.After(needs) <= p.expires
}

// isNew reports whether the attempt was given out in this transition.
func (fl *fleet) isNew(a *attempt) bool {
	return uint64(a.id)>>32 == fl.journal.incarnation && uint64(uint32(a.id)) > fl.numbers.before
}

func (fl *fleet) addAttempt(a *attempt) {
	if len(a.pilot.attempts) == 0 {
		a.pilot.record.worksSince = fl.now
	}
	a.given = fl.now
	fl.counts.moves++
	a.needs.users++
	a.next, a.job.attempt = a.job.attempt, a
	fl.attempts[a.id] = a
	a.pilot.attempts = append(a.pilot.attempts, a)
	a.pilot.host.busy++
	a.pilot.room.Add(&a.needs.takes, 1)
	fl.shares.chargeAttempt(a, fl.expectedRun)
	fl.nodeGiven(a)
	fl.limitsMoved(a)
	fl.recount(a.pilot)
}

// limitsMoved has pilots planned for again where the attempt counts in a limit: of the ready jobs more,
// or fewer, could start.
func (fl *fleet) limitsMoved(a *attempt) {
	if fl.shares.Bounded() || len(a.cost.pools) > 0 {
		fl.monitor.changed = true
	}
}

// removeAttempt forgets an attempt that has ended.
func (fl *fleet) removeAttempt(a *attempt) {
	delete(fl.attempts, a.id)
	fl.counts.moves++
	a.needs.users--
	if a.gang != nil && a.gang.members[a.task] == a {
		a.gang.members[a.task] = nil
	}
	fl.shares.settleAttempt(a)
	fl.nodeEnded(a)
	fl.limitsMoved(a)
	if a.told.recall {
		fl.counts.recalls--
	}
	if !a.started {
		fl.waitsNoMore(a)
	}
	for at := &a.job.attempt; *at != nil; at = &(*at).next {
		if *at == a {
			*at = a.next
			break
		}
	}
	fl.stagesInNoMore(a)
	if t := a.told.taker; t != nil && t.seat.taking == a {
		t.seat.taking = nil
	}
	p := a.pilot
	if len(p.exchange.arriving) > 0 {
		fl.attemptOver(a)
	}
	if i := slices.Index(p.attempts, a); i >= 0 {
		p.attempts = slices.Delete(p.attempts, i, i+1)
		p.host.busy--
	}
	p.room.Add(&a.needs.takes, -1)
	p.seat.askedInVain = 0
	fl.recount(p)
}

// attemptOver ends the arrivals for an attempt that is no more.
func (fl *fleet) attemptOver(a *attempt) {
	for i := len(a.pilot.exchange.arriving) - 1; i >= 0; i-- {
		if x := a.pilot.exchange.arriving[i]; x.attempt == a {
			fl.endArrival(x)
		}
	}
}

// ends reports whether the pilot is to be told to end an attempt that it is not known to have.
func (p *pilot) ends(id taskqueue.AttemptID) bool {
	return slices.ContainsFunc(p.ending, func(e ending) bool { return e.attempt == id })
}

// endUnknown has the pilot end an attempt that it is not known to have.
func (fl *fleet) endUnknown(p *pilot, id taskqueue.AttemptID) {
	if !p.ends(id) {
		p.ending = append(p.ending, ending{attempt: id})
	}
	fl.mustAnswer(p)
}

// mayHaveStarted reports whether a pilot can have begun an attempt of the class beside others:
// it runs what it has room for, and stores the outputs of no more attempts than it has slots.
// One that says more keeps the rest waiting.
func (p *pilot) mayHaveStarted(cl *class) bool {
	cpus, storing := p.room.CPUsOf(&cl.takes), 0
	for _, x := range p.attempts {
		if !x.started {
			continue
		}
		if n := p.room.CPUsOf(&x.needs.takes); cpus+n <= p.room.CPUs() {
			cpus += n
		} else {
			storing++
		}
	}
	return storing <= p.room.Slots()
}

// dropAttempt has the pilot of an attempt end it, which nobody waits for any more.
func (fl *fleet) dropAttempt(a *attempt) {
	fl.removeAttempt(a)
	if a.told.number != 0 || a.known() {
		fl.endUnknown(a.pilot, a.id)
	}
	fl.wantsJobs(a.pilot)
}

// endAttempts has all attempts of the job ended.
func (fl *fleet) endAttempts(j *job) {
	fl.forgetGang(j)
	for a := j.attempt; a != nil; {
		next := a.next
		if !a.told.ended {
			fl.endAttempt(a)
		}
		a = next
	}
}

// endAttempt has the pilot end an attempt, or forgets one that the pilot has not heard of. It
// reports whether it forgot it.
func (fl *fleet) endAttempt(a *attempt) bool {
	if a.told.number == 0 && !a.known() {
		fl.removeAttempt(a)
		fl.wantsJobs(a.pilot)
		return true
	}
	if !a.told.ended {
		a.told.ended, a.told.endNumber = true, 0 // before, it may have been asked for back only
	}
	fl.mustAnswer(a.pilot)
	return false
}

// waitsItsTurn reports whether the attempts given to the pilot before this one
// leave no room for it.
func (a *attempt) waitsItsTurn() bool {
	before := room.Room{Has: a.pilot.room.Has}
	for _, x := range a.pilot.attempts {
		if !x.precedes(a) {
			continue
		}
		if before.Add(&x.needs.takes, 1); !before.Fits(&a.needs.takes, 1) { // of hundreds the first ones tell
			return true
		}
	}
	return !before.Fits(&a.needs.takes, 1)
}

// precedes reports whether the attempt has its turn before another one of its pilot.
func (a *attempt) precedes(b *attempt) bool {
	switch {
	case a.started != b.started:
		return a.started
	case a.priority != b.priority && !a.started:
		return a.priority > b.priority
	}
	return a.id < b.id
}

// willing reports whether the pilot itself is prepared to take jobs.
func (p *pilot) willing() bool { return p.talk.synced && !p.left && p.acceptsJobs() }

// acceptsJobs reports whether it may be expected that the pilot takes jobs some time.
func (p *pilot) acceptsJobs() bool {
	return !p.talk.drains && p.lease.silent == 0 && p.info.Error == "" && !p.record.refused && !p.unneeded
}

// acceptanceChanged is for a pilot that may accept jobs now and did not, or the other way round. Jobs that
// avoid a host are offered there again: it may have been the last other one.
func (c *Core) acceptanceChanged(p *pilot) {
	was := p.counted
	p.shape.countHost(p)
	if was && !p.counted {
		c.placement.offerAvoiding()
	}
}

// takes reports whether the pilot may be given jobs at all.
func (fl *fleet) takes(p *pilot) bool {
	return p.willing() && fl.stop == running && fl.grace.over && !(p.record.withholds && p.hasUnbegun())
}

// hasUnbegun reports whether the pilot has something to begin. One that withholds jobs is tried with one at a time.
func (p *pilot) hasUnbegun() bool {
	return slices.ContainsFunc(p.attempts, func(a *attempt) bool { return !a.started && !a.told.ended })
}

// recount is for a pilot that may have become idle or busy, parked, or between two Syncs,
// or ceased to be. It keeps the counts of its site, and the list of the parked pilots.
func (fl *fleet) recount(p *pilot) {
	if l := p.launch; l != nil && l.pilot == p { // else another pilot has taken its place
		is := busy
		if p.willing() && len(p.attempts) == 0 {
			is = idle
		}
		if is != l.standing {
			l.site.pilots[l.standing]--
			l.site.pilots[is]++
			l.standing, l.since = is, fl.now
			fl.monitor.changed = true
		}
	}
	takes := fl.takes(p)
	if between := takes && p.talk.heldSeq == 0 && len(p.attempts) == 0; between != p.seat.between {
		p.seat.between = between
		if between {
			fl.counts.between++
		} else {
			fl.counts.between--
		}
	}
	is := takes && p.talk.heldSeq != 0 && p.seat.reserved == nil && !p.room.IsFull() &&
		(p.expires == 0 || p.expires > fl.now)
	switch {
	case is && p.seat.parked == 0:
		fl.parked = append(fl.parked, p)
		p.seat.parked = len(fl.parked)
	case !is && p.seat.parked > 0:
		removeAt(&fl.parked, int32(p.seat.parked-1)).seat.parked = p.seat.parked
		p.seat.parked = 0
	}
}

// waitAhead lists an attempt that was given to a pilot beyond what was free, or that the pilot
// should have begun.
func (fl *fleet) waitAhead(a *attempt) { fl.early.ahead = append(fl.waitingAhead(), a) }

// waitingAhead are these attempts in the order of their listing. Those that have begun or ended
// leave the list when they are half of it, so that a report costs the same however many wait.
func (fl *fleet) waitingAhead() []*attempt {
	if 2*fl.early.gone > len(fl.early.ahead) {
		fl.early.ahead = slices.DeleteFunc(fl.early.ahead, func(a *attempt) bool {
			return a.started ||
				fl.attempts[a.id] != a
		})
		fl.early.gone = 0
	}
	return fl.early.ahead
}

// waitsNoMore takes note that an attempt has begun, or has ended before.
func (fl *fleet) waitsNoMore(a *attempt) {
	if a.ahead {
		fl.early.gone++
	}
}

// countDelivered takes note that the pilot has ended so many attempts since it ended some
// before, or had nothing to do.
func (fl *fleet) countDelivered(p *pilot, ended int) {
	if ended == 0 {
		return
	}
	p.record.delivered += ended
	p.record.spacing.Add(time.Duration(fl.now-p.record.worksSince).Seconds()*float64(p.room.Slots()), float64(ended))
	p.record.worksSince = fl.now
}
