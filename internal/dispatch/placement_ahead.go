package dispatch

import (
	"slices"
	"time"
)

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
		*b = backlog{pilot: p, priority: priority, cpus: p.totalCPUs()}
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
	cpus := b.pilot.cpusOf(a.needs)
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
	run := pl.fleet.pace.runOf(a.job)
	if run == 0 {
		return 0, false
	}
	run = max(run, seconds(a.pilot.record.spacing.mean()))
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

// delivers takes note that the pilot has ended so many attempts since it ended some
// before, or had nothing to do.
func (fl *fleet) delivers(p *pilot, ended int) {
	if ended == 0 {
		return
	}
	p.record.delivered += ended
	p.record.spacing.add(time.Duration(fl.now-p.record.worksSince).Seconds()*float64(p.slots()), float64(ended))
	p.record.worksSince = fl.now
}
