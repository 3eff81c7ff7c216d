package dispatch

import "slices"

// An attempt whose input is still read, from storage or another host, is taken back for a
// pilot that has all of the input in reach and nothing else to do: the job begins there at
// once, and nothing is lost but what was read. The pilot that reads decides whether the
// command has begun, so that no message about it can come too late.

// maxTakenBack bounds how often a job is asked back while it is staged in.
const maxTakenBack = 2

// maxStaging bounds the versions in reach of a pilot, and the readers of all of them,
// that are looked at.
const maxStaging = 64

// takeBack asks for an attempt back for each pilot that has asked in this transition and
// got nothing that fills it.
func (pl *placement) takeBack() {
	for _, p := range pl.unserved {
		if p.parked == 0 || p.taking != nil && pl.isStaged(p.taking) {
			continue
		}
		if a := pl.longestStaged(p); a != nil {
			a.job.itsFate().takenBack++
			a.taker, p.taking = p, a
			pl.fleet.mustAnswer(a.pilot)
		}
	}
	pl.unserved = pl.unserved[:0]
}

// longestStaged returns the attempt that has been staged in for longest of those that the
// pilot could begin at once, nil if there is none.
func (pl *placement) longestStaged(p *pilot) *attempt {
	var longest *attempt
	versions, readers := maxStaging, maxStaging
	for v := range p.inReach {
		if versions--; versions < 0 {
			break
		}
		for r := v.file.fifo.Head(); r != nil && readers > 0; r = r.NextGranted() {
			readers--
			a := r.Owner.job.attempt
			if a != nil && r.Owner.read == v && (longest == nil || a.since < longest.since) && pl.couldTake(p, a) {
				longest = a
			}
		}
	}
	return longest
}

// inReach yields the versions that the pilot can read from caches, its own first and those
// that came last before others. One that several caches hold comes several times.
func (p *pilot) inReach(yield func(*version) bool) {
	for _, v := range slices.Backward(p.versions) {
		if !yield(v) {
			return
		}
	}
	for _, o := range p.host.pilots {
		if o == p || !p.shares(o) {
			continue
		}
		for _, v := range slices.Backward(o.versions) {
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
	if !a.started || a.ended || a.taker != nil || a.next != nil || a.pilot == p || pl.now.after(-minGain) < a.since ||
		j.fate != nil && (j.fate.takenBack >= maxTakenBack || j.fate.Private) || j.step.run.halted() {
		return false
	}
	return pl.mayStart(p, j) && p.lacking(j) == 0 && pl.isStaged(a) && (!pl.fleet.choosesSites() || pl.scoreWith(j, p) <= pl.scoreWith(j, a.pilot))
}

// isStaged reports whether the pilot of the attempt lacks some of its input, as far as it
// has told.
func (pl *placement) isStaged(a *attempt) bool { return a.pilot.lacking(a.job) > 0 }

// handOver gives the jobs that were given back in this transition to the pilots for which
// they were asked back. Where such a pilot has something else to do by now, its job is
// placed as any other.
func (pl *placement) handOver() {
	for _, a := range pl.givenBack {
		if p := a.taker; a.job.group != nil && pl.fleet.takes(p) && p.reserved == nil && pl.mayStart(p, a.job) {
			pl.assign(a.job, p)
		}
	}
	clear(pl.givenBack)
	pl.givenBack = pl.givenBack[:0]
}
