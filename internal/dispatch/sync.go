package dispatch

import "slices"

// sync takes one call of a pilot. Whatever else it is, results in it count:
// they name their jobs, and are idempotent.
func (c *Core) sync(s *Sync) error {
	if s.Pilot == "" {
		return refuse("dispatch: a sync without a pilot")
	}
	p := c.fleet.pilots[s.Pilot]
	if p != nil && s.Seq < p.seq {
		c.effects.Replies = append(c.effects.Replies, Reply{s.Pilot, s.Seq, Answer{Superseded: true}})
		return nil
	}
	if p == nil && (!s.Full || s.Hello == nil) {
		c.strangersSync(s)
		return nil
	}
	if p == nil {
		p = c.fleet.register(s)
	}
	c.fleet.supersedeHeld(p, s)
	c.takeSync(p, s)
	return nil
}

// strangersSync answers a pilot of which nothing is known.
func (c *Core) strangersSync(s *Sync) {
	for i := range s.Ended {
		c.resultArrived(s.Pilot, nil, &s.Ended[i])
	}
	c.effects.Replies = append(c.effects.Replies, Reply{s.Pilot, s.Seq, Answer{
		Number: c.fleet.nextAnswer(), Seen: s.Seq, NeedFull: true, NextSync: 0, LeaveNow: c.fleet.stop == stopped,
	}})
}

// nextAttempt numbers an attempt: above all before, of any incarnation.
func (fl *fleet) nextAttempt() AttemptID {
	fl.lastAttempt++
	return AttemptID(fl.journal.incarnation<<32 | fl.lastAttempt)
}

// nextAnswer numbers an answer: above all before, of any incarnation.
func (fl *fleet) nextAnswer() uint64 {
	fl.lastAnswer++
	return fl.journal.incarnation<<32 | fl.lastAnswer
}

func (fl *fleet) supersedeHeld(p *pilot, s *Sync) {
	if p.held != 0 && p.held != s.Seq {
		fl.reply(p, Answer{Superseded: true})
	}
	p.seq, p.held, p.heldAt = s.Seq, s.Seq, fl.now
	p.silentAfter = fl.now.after(fl.config.Hold + fl.config.PilotLease)
	fl.armPilot(p)
}

func (c *Core) takeSync(p *pilot, s *Sync) {
	if s.Hello != nil {
		c.fleet.describe(p, *s.Hello)
	}
	p.drains, p.polls = s.Draining, !s.Hold
	for i := range s.Ended {
		c.resultArrived(p.id, p, &s.Ended[i])
	}
	changes := len(s.CacheAdded) + len(s.CacheGone)
	if len(s.Ended) > 0 || !s.Hold || p.news || c.fleet.mustLeave(p) && !p.toldToLeave || changes >= maxUnconfirmed {
		c.fleet.tell(p)
	}
	switch {
	case s.Full:
		c.takeWhole(p, s)
		c.fleet.tell(p) // so that the changes that follow have an answer to build on
	case !p.synced || p.base == 0 || s.LastAnswer < p.base:
		// The Full that it was registered from may have been a late copy of
		// an old one.
		p.needFull = true
		c.fleet.tell(p)
	default:
		c.takeChanges(p, s)
	}
	p.ending = slices.DeleteFunc(p.ending, func(e ending) bool { return e.number != 0 && s.LastAnswer >= e.number })
	if s.LastAnswer > p.acked {
		p.acked = s.LastAnswer
	}
	c.endsConfirmed(p, s.LastAnswer)
	if s.Leaving {
		c.leavePilot(p)
		return
	}
	c.fleet.monitor.count(p)
	c.fleet.resend(p)
	c.fleet.updateParked(p)
	c.fleet.ask(p)
}

// maxUnconfirmed is how many changes of its cache a pilot sends until it is
// answered, so that it need not send them again. A Sync repeats all that no answer
// has confirmed: while an attempt stores thousands of files, each of its Syncs would
// carry all those before.
const maxUnconfirmed = 64

func (fl *fleet) mustLeave(p *pilot) bool { return fl.stop != running || p.info.Error != "" }

// resend has the pilot answered if it did not get what was given to it.
func (fl *fleet) resend(p *pilot) {
	for _, a := range p.attempts {
		if a.number > p.acked && !a.known() || a.ended && a.endNumber > p.acked {
			fl.tell(p)
			return
		}
	}
	if len(p.ending) > 0 {
		fl.tell(p)
	}
}

// known says that the pilot itself has reported the attempt.
func (a *attempt) known() bool { return a.started || a.adopted }

func (c *Core) takeChanges(p *pilot, s *Sync) {
	for _, ref := range s.Started {
		c.started(p, ref)
	}
	c.cacheChanges(p, s)
}

// takeWhole replaces all that is known of the pilot by what it says.
func (c *Core) takeWhole(p *pilot, s *Sync) {
	p.synced, p.needFull = true, false
	said := make(map[AttemptID]bool, len(s.Queued)+len(s.Started))
	for _, ref := range s.Queued {
		said[ref.Attempt] = true
		c.adopt(p, ref)
	}
	for _, ref := range s.Started {
		said[ref.Attempt] = true
		c.adopt(p, ref)
		c.started(p, ref)
	}
	for _, a := range slices.Clone(p.attempts) {
		if !said[a.id] && (a.known() || a.number != 0 && s.LastAnswer >= a.number) {
			c.attemptLost(a, "the pilot no longer has it")
		}
	}
	c.replaceCache(p, s)
	p.advice.incoming = p.cacheLimit() // it follows no order any more
	c.endAwaiting(p)
}

// adopt takes over an attempt that an earlier incarnation, or this one before
// it thought the pilot lost, had assigned. One whose job has an end already
// is ended, and so is one of an earlier submission.
func (c *Core) adopt(p *pilot, ref AttemptRef) {
	if a := c.fleet.attempts[ref.Attempt]; a != nil && a.pilot == p {
		a.adopted = true
		return
	}
	j := c.queue.find(ref.Job)
	if j == nil || c.journal.foreign(ref.Attempt) || !j.live() || c.fleet.attempts[ref.Attempt] != nil || j.counted(ref.Attempt) {
		p.ending = append(p.ending, ending{attempt: ref.Attempt})
		c.fleet.tell(p)
		return
	}
	c.placement.unready(j)
	c.files.unawait(j)
	if j.state < Assigned {
		c.queue.setState(j, Assigned)
	}
	c.fleet.addAttempt(&attempt{id: ref.Attempt, job: j, pilot: p, needs: j.class, try: j.tries() + 1, adopted: true})
}

// foreign says that an attempt belongs to an earlier submission, or to a store
// that is lost: to another job that bore the same number, if any does.
func (jn *journal) foreign(id AttemptID) bool {
	incarnation := uint64(id >> 32)
	return incarnation < jn.since || incarnation > jn.incarnation
}

// counted says whether the end of the attempt has been dealt with, other than by
// the last commit.
func (j *job) counted(id AttemptID) bool {
	return j.fate != nil && slices.Contains(j.fate.Attempts, id)
}

func (c *Core) started(p *pilot, ref AttemptRef) {
	a := c.fleet.attempts[ref.Attempt]
	if a == nil || a.pilot != p || a.started {
		return
	}
	a.started, a.since = true, c.now
	if a.job.state == Assigned {
		c.queue.setState(a.job, Running)
	}
	c.event(Event{Kind: JobStarted, Job: a.job.id, Name: a.job.name, Step: a.job.step.Step, Pilot: p.id})
}
