package dispatch

import "slices"

// sync takes one call of a pilot. Whatever else it is, results in it count:
// they name their jobs, and are idempotent.
func (c *Core) sync(s *Sync) error {
	if s.Pilot == "" {
		return refuse("dispatch: a sync without a pilot")
	}
	p := c.pilots[s.Pilot]
	if p != nil && s.Seq < p.seq {
		c.effects.Replies = append(c.effects.Replies, Reply{s.Pilot, s.Seq, Answer{Superseded: true}})
		return nil
	}
	if p == nil && (!s.Full || s.Hello == nil) {
		c.strangersSync(s)
		return nil
	}
	if p == nil {
		p = c.register(s)
	}
	c.supersedeHeld(p, s)
	c.takeSync(p, s)
	return nil
}

// strangersSync answers a pilot of which nothing is known.
func (c *Core) strangersSync(s *Sync) {
	for i := range s.Ended {
		c.resultArrived(s.Pilot, nil, &s.Ended[i])
	}
	c.lastAnswer++
	c.effects.Replies = append(c.effects.Replies, Reply{s.Pilot, s.Seq, Answer{
		Number: c.answerNumber(), Seen: s.Seq, NeedFull: true, NextSync: 0, LeaveNow: c.stop == stopped,
	}})
}

func (c *Core) answerNumber() uint64 { return c.journal.incarnation<<32 | c.lastAnswer }

func (c *Core) supersedeHeld(p *pilot, s *Sync) {
	if p.held != 0 && p.held != s.Seq {
		c.effects.Replies = append(c.effects.Replies, Reply{p.id, p.held, Answer{Superseded: true}})
	}
	p.seq, p.held, p.heldAt = s.Seq, s.Seq, c.now
	p.silentAfter = c.now.after(c.config.Hold + c.config.PilotLease)
	c.armPilot(p)
}

func (c *Core) takeSync(p *pilot, s *Sync) {
	if s.Hello != nil {
		c.describe(p, *s.Hello)
	}
	p.drains, p.polls = s.Draining, !s.Hold
	for i := range s.Ended {
		c.resultArrived(p.id, p, &s.Ended[i])
	}
	changes := len(s.CacheAdded) + len(s.CacheGone)
	if len(s.Ended) > 0 || !s.Hold || p.news || c.mustLeave(p) && !p.toldToLeave || changes >= maxUnconfirmed {
		c.tell(p)
	}
	switch {
	case s.Full:
		c.takeWhole(p, s)
		c.tell(p) // so that the changes that follow have an answer to build on
	case !p.synced || p.base == 0 || s.LastAnswer < p.base:
		// The Full that it was registered from may have been a late copy of
		// an old one.
		p.needFull = true
		c.tell(p)
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
	c.monitor.count(p)
	c.resend(p)
	c.updateSpare(p)
	c.ask(p)
}

// maxUnconfirmed is how many changes of its cache a pilot sends until it is
// answered, so that it need not send them again. A Sync repeats all that no answer
// has confirmed: while an attempt stores thousands of files, each of its Syncs would
// carry all those before.
const maxUnconfirmed = 64

func (c *Core) mustLeave(p *pilot) bool { return c.stop != running || p.info.Error != "" }

// resend has the pilot answered if it did not get what was given to it.
func (c *Core) resend(p *pilot) {
	for _, a := range p.attempts {
		if a.number > p.acked && !a.known() || a.ended && a.endNumber > p.acked {
			c.tell(p)
			return
		}
	}
	if len(p.ending) > 0 {
		c.tell(p)
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
	if a := c.attempts[ref.Attempt]; a != nil && a.pilot == p {
		a.adopted = true
		return
	}
	j := c.queue.find(ref.Job)
	if j == nil || c.journal.foreign(ref.Attempt) || !j.live() || c.attempts[ref.Attempt] != nil || j.counted(ref.Attempt) {
		p.ending = append(p.ending, ending{attempt: ref.Attempt})
		c.tell(p)
		return
	}
	c.unready(j)
	c.files.unawait(j)
	if j.state < Assigned {
		c.queue.setState(j, Assigned)
	}
	c.addAttempt(&attempt{id: ref.Attempt, job: j, pilot: p, needs: j.class, try: j.tries() + 1, adopted: true})
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
	a := c.attempts[ref.Attempt]
	if a == nil || a.pilot != p || a.started {
		return
	}
	a.started, a.since = true, c.now
	if a.job.state == Assigned {
		c.queue.setState(a.job, Running)
	}
	c.event(Event{Kind: JobStarted, Job: a.job.id, Name: a.job.name, Step: a.job.step.Step, Pilot: p.id})
}
