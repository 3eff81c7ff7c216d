package dispatch

import "slices"

// recall takes queued attempts back from pilots that are busy, for parked
// pilots that could start them at once. It is a rare event: jobs are queued at
// pilots only while there are more ready ones than slots.
//
// It reports whether jobs were freed at once, because their pilot has not
// heard of them yet.
func (pl *placement) recall() bool {
	if len(pl.ahead) == 0 || len(pl.fleet.parked) == 0 {
		return false
	}
	freed := false
	free := -pl.fleet.recalls
	for _, p := range pl.fleet.parked {
		free += max(0, p.slots()-len(p.attempts))
	}
	pl.ahead = slices.DeleteFunc(pl.ahead, func(a *attempt) bool {
		return a.started || a.ended || pl.fleet.attempts[a.id] != a
	})
	for i := len(pl.ahead) - 1; i >= 0 && free > 0; i-- {
		if a := pl.ahead[i]; a.waitsItsTurn() && pl.couldStartElsewhere(a) {
			free--
			if pl.fleet.endAttempt(a) {
				freed = true
				pl.requeue(a.job)
				continue
			}
			a.recall = true
			pl.fleet.recalls++
		}
	}
	return freed
}

// takeBackQueued takes back the attempts for which the pilot has no room yet:
// at an orderly end they are not started any more.
func (pl *placement) takeBackQueued(p *pilot) {
	for i := len(p.attempts) - 1; i >= 0; i-- {
		a := p.attempts[i]
		if !a.started && !a.ended && a.waitsItsTurn() && pl.fleet.endAttempt(a) {
			pl.requeue(a.job)
		}
	}
}

// couldStartElsewhere reports whether a parked pilot would be given the job. From
// one from which it would be kept, it would only come back here.
func (pl *placement) couldStartElsewhere(a *attempt) bool {
	return slices.ContainsFunc(pl.fleet.parked[:min(len(pl.fleet.parked), maxPlaces)], func(p *pilot) bool {
		if p == a.pilot || !pl.mayStart(p, a.job) {
			return false
		}
		holder, _ := pl.worthWaitingFor(a.job, p)
		better, _ := pl.betterSite(a.job, p)
		return holder == nil && better == nil
	})
}
