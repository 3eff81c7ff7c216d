package dispatch

import (
	"cmp"
	"math"
	"time"
)

// Usage is kept in units of which 2^(age/HalfLife) are a slot-second now, where age is the time
// since shares.epoch. So what was used before counts less and less, although no number changes.

// maxAge is how many half-lives old the epoch grows: the units are then counted anew.
const maxAge = 64

// usagePeriod is how long usage may be counted and not recorded yet.
const usagePeriod = 10 * time.Second

// unit is how many units a slot-second is now, for what is counted from now on.
func (sh *shares) unit() float64 {
	if sh.epoch == 0 || math.Abs(sh.age()) > maxAge {
		sh.beginEpoch()
	}
	return sh.scale()
}

// scale is how many units a slot-second is now.
func (sh *shares) scale() float64 {
	if sh.epoch == 0 {
		return 1
	}
	return math.Exp2(sh.age())
}

// age is that of the epoch, in half-lives.
func (sh *shares) age() float64 { return float64(sh.now-sh.epoch) / float64(sh.halfLife()) }

func (sh *shares) halfLife() time.Duration { return cmp.Or(sh.said.HalfLife, DefaultHalfLife) }

// beginEpoch counts usage in slot-seconds of now. What was equal stays equal.
func (sh *shares) beginEpoch() {
	if sh.epoch != 0 {
		by := math.Exp2(-sh.age())
		for s := range sh.each {
			s.settled *= by
			s.charged *= by
		}
		sh.reorder()
	}
	sh.epoch = sh.now
}

// reorder brings all shares into the order of their turns again.
func (sh *shares) reorder() {
	for s := range sh.each {
		s.rekey()
	}
	for s := range sh.each {
		for i := range s.active {
			s.active[i].reposition() // those before are in order
		}
	}
}

func (s *share) usage() float64 { return s.settled + s.charged }

func (s *share) rekey() {
	switch used := s.usage(); {
	case s.weight == 0:
		s.key = 0
	case used <= 0:
		s.key = math.Inf(1)
	default:
		s.key = float64(s.weight) / used
	}
}

// levelFS is the level fair share of Slurm's Fair Tree: the part of the weights of all siblings
// over the part of their usage. It is 0 without weight, and infinite without usage. It is one
// quotient of products, which are exact for small numbers, so that groups which are tied are equal.
func (s *share) levelFS() float64 {
	if s.key == 0 || math.IsInf(s.key, 1) {
		return s.key
	}
	return float64(s.weight) * s.parent.usage() / (s.usage() * float64(s.parent.weights))
}

// slotsOf is how many slots of a pilot an attempt takes: the largest part that it needs of
// anything that the pilot has, in slots.
func slotsOf(p *pilot, cl *class) float64 {
	has, k := &p.info.Has, &cl.key
	part := float64(p.cpusOf(cl)) / float64(p.totalCPUs())
	if k.memory > 0 {
		part = max(part, float64(k.memory)/float64(max(has.Memory, 1)))
	}
	if k.disk > 0 {
		part = max(part, float64(k.disk)/float64(max(has.Disk, 1)))
	}
	for _, n := range cl.countable {
		if most := thousandths(has.Countable[n.name]); most > 0 {
			part = max(part, float64(n.n)/float64(most))
		}
	}
	return min(part, 1) * float64(p.totalCPUs()) / minSlot
}

// expectedRun is how long an attempt of the job is expected to take: as those of its step
// took, else as it says, else as all took.
func (fl *fleet) expectedRun(j *job) time.Duration {
	if run := fl.pace.runOf(j); run > 0 {
		return run
	}
	return cmp.Or(j.class.key.time, seconds(fl.pace.all.mean()), assumedRun)
}

// begin charges an attempt that was given out.
func (sh *shares) begin(a *attempt, run func(*job) time.Duration) {
	if a.pools = a.needs.pools; a.pools != nil {
		sh.grants(a.pools, 1)
	}
	if sh.solo {
		return
	}
	a.slots = slotsOf(a.pilot, a.needs)
	a.charge = a.slots * run(a.job).Seconds()
	units := a.charge * sh.unit()
	a.cpus = a.pilot.cpusOf(a.needs)
	for s := range a.job.step.run.share.up {
		s.charged += units
		s.attempts++
		s.cpus += a.cpus
		s.takeAt(a.pilot.launch.site.Name, 1, a.cpus)
		s.rekey()
		s.reposition()
	}
}

// end settles what an attempt has used.
func (sh *shares) end(a *attempt) {
	sh.grants(a.pools, -1)
	if a.slots == 0 { // it was not charged
		return
	}
	used := a.slots * a.occupied(sh.now).Seconds() * sh.unit() // may begin a new epoch
	charge := a.charge * math.Exp2(float64(a.given-sh.epoch)/float64(sh.halfLife()))
	user := a.job.step.run.share
	for s := range user.up {
		s.charged = max(0, s.charged-charge)
		if s.attempts--; s.attempts == 0 {
			s.charged = 0
		}
		s.cpus -= a.cpus
		s.takeAt(a.pilot.launch.site.Name, -1, -a.cpus)
		sh.gaveBack(s)
		s.settled += used
		s.rekey()
		s.reposition()
	}
	a.slots = 0
	if used > 0 {
		sh.save(user)
	}
}

// occupied is how long an attempt has kept its slots: as its pilot measured, else since it was
// known to run.
func (a *attempt) occupied(now instant) time.Duration {
	since := a.given
	if a.adopted {
		since = a.job.submitted
	}
	switch {
	case a.took > 0:
		return min(a.took, time.Duration(now-since))
	case a.started:
		return time.Duration(now - a.since)
	}
	return 0
}

// save has the usage of a user recorded within usagePeriod.
func (sh *shares) save(s *share) {
	if s.unsaved || s == sh.nobody {
		return
	}
	s.unsaved = true
	sh.dirty = append(sh.dirty, s)
	if sh.armed == 0 {
		sh.armed = sh.now.after(usagePeriod)
		sh.timers.add(timer{at: sh.armed, kind: usageTimer})
	}
}

// saveAll records the usage of those whose usage has changed.
func (sh *shares) saveAll() {
	sh.armed = 0
	for _, s := range sh.dirty {
		s.unsaved = false
		sh.journal.persistUsage(s, s.settled/sh.scale())
	}
	sh.dirty = emptied(sh.dirty)
}

// load takes the usage of a user as it was recorded.
func (sh *shares) load(b *usageBody) {
	if sh.epoch == 0 {
		sh.epoch = b.At
	}
	units := b.Used * math.Exp2(float64(b.At-sh.epoch)/float64(sh.halfLife()))
	if math.IsInf(units, 0) || math.IsNaN(units) {
		return // half-lives past counting lie between it and others
	}
	for s := range sh.account(Account{b.Group, b.User}).up {
		s.settled += units
		s.rekey()
	}
}

// ahead is by how many slot-seconds a user has used more than the share, relative to another one.
func (sh *shares) ahead(s, of *share) float64 {
	a, b := apart(s, of)
	if b.weight == 0 {
		return 0
	}
	return (a.usage() - b.usage()*float64(a.weight)/float64(b.weight)) / sh.scale()
}
