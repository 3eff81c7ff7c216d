package dispatch

import (
	"slices"

	"fairway/internal/dispatch/delay"
)

// An attempt whose input is still read, from storage or another host, is taken back for a
// pilot that has all of the input in reach and nothing else to do: the job begins there at
// once, and nothing is lost but what was read. The pilot that reads decides whether the
// command has begun, so that no message about it can come too late.

// maxTakenBack bounds how often a job is asked back while it is staged in.
const maxTakenBack = 2

// maxStaging bounds what is looked at for one pilot that asks: the versions in its reach,
// the attempts that lack them, and the requests of the job of each. An attempt of a job that
// has more requests is not taken back.
const maxStaging = 64

// stagesIn lists an attempt that has started, if its pilot lacks some of its input and it may be
// asked back. It is listed under the input that the fewest pilots have of those that its pilot
// lacks: who can take it has that too.
func (fl *fleet) stagesIn(a *attempt) {
	j := a.job
	if len(j.requests) > maxStaging || j.fate != nil && (j.fate.takenBack >= maxTakenBack || j.fate.Private) {
		return
	}
	var rarest *version
	for i := range j.requests {
		r := &j.requests[i]
		if r.staged() && !a.pilot.reaches(r.read) && (rarest == nil || len(r.read.holders) < len(rarest.holders)) {
			rarest = r.read
		}
	}
	if rarest != nil {
		a.lacks, a.listed = rarest, int32(len(fl.early.staging[rarest]))
		fl.early.staging[rarest] = append(fl.early.staging[rarest], a)
	}
}

// stagesInNoMore takes an attempt off that list, if it is there.
func (fl *fleet) stagesInNoMore(a *attempt) {
	v := a.lacks
	if v == nil {
		return
	}
	a.lacks = nil
	list := fl.early.staging[v]
	removeAt(&list, a.listed).listed = a.listed
	if fl.early.staging[v] = list; len(list) == 0 {
		delete(fl.early.staging, v)
	}
}

// takeBack asks for an attempt back for each pilot that has asked in this transition and still
// has room. If an attempt is being asked back for such a pilot already, the pilot waits until the
// pilot that reads has heard of that: it then gives the attempt back, or goes on.
func (pl *placement) takeBack() {
	for _, p := range pl.roomLeft {
		if len(pl.fleet.early.staging) == 0 {
			break
		}
		if t := p.seat.taking; p.seat.parked == 0 || t != nil && (t.told.endNumber == 0 ||
			t.told.endNumber > t.pilot.talk.acked) {
			continue
		}
		if a := pl.longestStaged(p); a != nil {
			a.job.itsFate().takenBack++
			a.told.taker, p.seat.taking = p, a
			pl.fleet.stagesInNoMore(a)
			pl.askBack(a)
		}
	}
	clear(pl.roomLeft)
	pl.roomLeft = pl.roomLeft[:0]
}

// longestStaged returns the attempt that has been staged in for longest of those that the
// pilot could begin at once, nil if there is none.
func (pl *placement) longestStaged(p *pilot) *attempt {
	var longest *attempt
	versions, attempts := maxStaging, maxStaging
	for v := range p.inReach {
		if versions--; versions < 0 {
			break
		}
		list := pl.fleet.early.staging[v]
		n := min(len(list), attempts)
		attempts -= n
		for _, a := range slices.Backward(list[:n]) { // the last takes the place of one that leaves it
			if !a.pilot.lacksSome(a.job) {
				pl.fleet.stagesInNoMore(a)
			} else if (longest == nil || a.since < longest.since) && pl.couldTake(p, a) {
				longest = a
			}
		}
	}
	return longest
}

// inReach yields the versions that the pilot can read from caches, its own first and those
// that came last before others. One that several caches hold comes several times.
func (p *pilot) inReach(yield func(*version) bool) {
	for _, v := range slices.Backward(p.copies.versions) {
		if !yield(v) {
			return
		}
	}
	for _, o := range p.host.pilots {
		if o == p || !p.sharesCacheWith(o) {
			continue
		}
		for _, v := range slices.Backward(o.copies.versions) {
			if !yield(v) {
				return
			}
		}
	}
}

// couldTake reports whether the pilot could begin the command of an attempt for which
// another one still reads the input.
func (pl *placement) couldTake(p *pilot, a *attempt) bool {
	j := a.job
	return !a.told.ended && a.gang == nil && a.told.asked == 0 && a.next == nil && j.attempt == a && a.pilot != p &&
		a.since <= pl.now.After(-delay.MinGain) && !j.step.run.halted() &&
		pl.couldBegin(p, j) && (!pl.fleet.choosesSites() || pl.scoreWith(j, p) <= pl.scoreWith(j, a.pilot))
}

// couldBegin reports whether the pilot may be given the job without waiting for its site, and
// lacks nothing of its input.
func (pl *placement) couldBegin(p *pilot, j *job) bool {
	return pl.admits(p, j.class, false) == always && pl.mayFill(p, j) && !p.lacksSome(j)
}

// assignGivenBack gives the jobs that were given back in this transition to the pilots for which
// they were asked back. Where such a pilot has something else to do by now, or lacks some of the
// input, its job is placed as any other.
func (pl *placement) assignGivenBack() {
	for _, a := range pl.givenBack {
		if p := a.told.taker; a.job.group != nil && pl.fleet.takes(p) && p.seat.reserved == nil && pl.couldBegin(p, a.job) {
			pl.assign(a.job, p)
		}
	}
	clear(pl.givenBack)
	pl.givenBack = pl.givenBack[:0]
}
