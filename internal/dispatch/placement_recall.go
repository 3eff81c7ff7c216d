package dispatch

import "slices"

// A pilot is asked to give an attempt back that waits there, and tells that it has in
// milliseconds. If it does not, the attempt is forfeited (forfeit.go); so no pilot can
// refuse. One whose command has begun stays where it is.

// recall takes queued attempts back from pilots that are busy, for parked
// pilots that could start them at once. It is a rare event: jobs are queued at
// pilots only while there are more ready ones than slots.
//
// It reports whether jobs were freed at once, because their pilot has not
// heard of them yet.
func (pl *placement) recall() bool {
	waiting := pl.fleet.waitingAhead()
	if len(waiting) == 0 || len(pl.fleet.parked) == 0 {
		return false
	}
	freed := false
	free := pl.unclaimed()
	clear(pl.roomFor)
	for i := len(waiting) - 1; i >= 0 && free > 0; i-- {
		a := waiting[i]
		if a.started || pl.fleet.attempts[a.id] != a {
			continue
		}
		waits := a.isLate(pl.now, &pl.config) || a.waitsItsTurn()
		if a.leaves() || !pl.someHasRoom(a.job.class) || !waits || !pl.couldStartElsewhere(a) {
			continue
		}
		free--
		if pl.askBack(a) {
			freed = true
			continue
		}
		a.told.recall = true
		pl.fleet.counts.recalls++
		pl.noteWithholding(a)
	}
	return freed
}

// noteWithholding is for an attempt that is taken back. One that its pilot had room for and has not begun in time
// says that it begins none: it is tried with one at a time until it does, and gets what no idle pilot could begin.
func (pl *placement) noteWithholding(a *attempt) {
	if p := a.pilot; !p.record.withholds && a.isLate(pl.now, &pl.config) && !a.waitsItsTurn() {
		p.record.withholds = true
		pl.fleet.recount(p)
	}
}

// unclaimed is how many more attempts parked pilots could begin than are being taken back for
// them. Those may come to any pilot, so a pilot can be idle for as long as one that was asked may
// take to answer.
func (pl *placement) unclaimed() int {
	n := -pl.fleet.counts.recalls
	for _, p := range pl.fleet.parked {
		n += max(0, p.room.Slots()-len(p.attempts))
	}
	return n
}

// askBack has the pilot give an attempt back, or forgets one that the pilot has not heard
// of. It reports whether it forgot it.
func (pl *placement) askBack(a *attempt) bool {
	if a.told.number == 0 && !a.known() {
		return pl.fleet.endAttempt(a) && pl.requeued(a.job)
	}
	if a.told.asked == 0 {
		a.told.asked, a.told.endNumber = pl.now, 0
		pl.fleet.checkLater(a.pilot, a.returnedBy(&pl.config))
	}
	pl.fleet.mustAnswer(a.pilot)
	return false
}

func (pl *placement) requeued(j *job) bool {
	pl.requeue(j)
	return true
}

// someHasRoom reports whether a parked pilot has room for the class. That is looked
// up once in a recall: it does not change while attempts are taken back from others,
// and thousands of one class may be queued while every parked pilot lacks what it needs.
func (pl *placement) someHasRoom(cl *class) bool {
	for len(pl.roomFor) <= cl.index {
		pl.roomFor = append(pl.roomFor, 0)
	}
	if pl.roomFor[cl.index] == 0 {
		pl.roomFor[cl.index] = -1
		if slices.ContainsFunc(pl.recallPlaces(), func(p *pilot) bool { return pl.admits(p, cl, false) != never }) {
			pl.roomFor[cl.index] = 1
		}
	}
	return pl.roomFor[cl.index] > 0
}

// recallPlaces are the parked pilots that a recall looks at.
func (pl *placement) recallPlaces() []*pilot {
	return pl.fleet.parked[:min(len(pl.fleet.parked), maxPlaces)]
}

// takeBackQueued takes back the attempts for which the pilot has no room yet, of one run
// or, with nil, of all: at an orderly end they are not started any more.
func (pl *placement) takeBackQueued(p *pilot, r *run) {
	for _, a := range slices.Backward(slices.Clone(p.attempts)) {
		if pl.fleet.attempts[a.id] != a {
			continue // it has gone with another one of its gang
		}
		if g := pl.fleet.current(a); g != nil {
			if (r == nil || a.job.step.run == r) && !g.begins {
				pl.restart(g)
			}
			continue
		}
		if (r == nil || a.job.step.run == r) && !a.started && !a.told.ended && a.waitsItsTurn() && pl.fleet.endAttempt(a) {
			pl.requeue(a.job)
		}
	}
}

// couldStartElsewhere reports whether a parked pilot would be given the job. From
// one from which it would be kept, it would only come back here.
func (pl *placement) couldStartElsewhere(a *attempt) bool {
	return slices.ContainsFunc(pl.recallPlaces(), func(p *pilot) bool {
		if p == a.pilot || !pl.mayStart(p, a.job) {
			return false
		}
		holder, _ := pl.worthWaitingFor(a.job, p)
		better, _ := pl.betterSite(a.job, p)
		return holder == nil && better == nil
	})
}
