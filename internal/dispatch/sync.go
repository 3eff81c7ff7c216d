package dispatch

import (
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// sync takes one call of a pilot. Results in it count whoever sends it: they name their
// jobs, and are idempotent. A call that a later one has overtaken is not read; the pilot
// repeats what was not acknowledged.
func (c *Core) sync(s *taskqueue.Sync) error {
	if s.Pilot == "" {
		return refuse("dispatch: a sync without a pilot")
	}
	p := c.fleet.pilots[s.Pilot]
	switch {
	case p != nil && s.Seq < p.talk.seq:
		c.effects.Replies = append(c.effects.Replies, taskqueue.Reply{Pilot: s.Pilot, Seq: s.Seq,
			Answer: taskqueue.Answer{Superseded: true}})
		return nil
	case p != nil && p.record.refused && s.Leaving:
		p.talk.seq, p.talk.heldSeq = s.Seq, s.Seq
		c.farewell(p)
		return nil
	case p != nil && p.record.refused:
		c.effects.Replies = append(c.effects.Replies, taskqueue.Reply{Pilot: s.Pilot, Seq: s.Seq, Answer: taskqueue.Answer{
			Number: c.fleet.nextAnswer(), Seen: s.Seq, LeaveNow: true,
		}})
		return nil
	case p == nil && (!s.Full || s.Hello == nil): // nothing is known of it
		for i := range s.Ended {
			c.resultArrived(s.Pilot, nil, &s.Ended[i])
		}
		c.effects.Replies = append(c.effects.Replies, taskqueue.Reply{Pilot: s.Pilot, Seq: s.Seq, Answer: taskqueue.Answer{
			Number: c.fleet.nextAnswer(), Seen: s.Seq, NeedFull: true, NextSync: 0, LeaveNow: c.fleet.stop == stopped,
		}})
		return nil
	case p == nil:
		p = c.fleet.register(s)
		c.placement.offerAvoiding() // it may have been the last that was expected
	case p.talk.heldSeq != 0 && p.talk.heldSeq != s.Seq:
		c.reply(p, taskqueue.Answer{Superseded: true})
	}
	c.endSilence(p)
	p.talk.seq, p.talk.heldSeq, p.talk.heldSince = s.Seq, s.Seq, c.now
	p.lease.silentAfter = c.now.After(c.config.Hold + c.fleet.lease(p))
	c.fleet.armPilot(p)
	c.takeSync(p, s)
	return nil
}

// takeSync takes what a call says, in stages: first the ends of attempts, which count whatever
// else it says, then what the pilot runs and holds, and what it has heard. It lists the pilot to
// be answered if there is something to say, and to be given jobs.
func (c *Core) takeSync(p *pilot, s *taskqueue.Sync) {
	c.takeDescription(p, s)
	c.takeResults(p, s)
	if c.answerIsDue(p, s) {
		c.fleet.mustAnswer(p)
	}
	c.takeHoldings(p, s)
	c.takeMembers(p, s)
	c.takeSaved(p, s)
	c.takeWaiting(p, s)
	c.takeMoves(p, s)
	c.takeHeard(p, s)
	if s.Leaving {
		c.farewell(p)
		return
	}
	if p.toldTooLittle() {
		c.fleet.mustAnswer(p)
	}
	c.fleet.recount(p)
	c.fleet.wantsJobs(p)
}

// takeDescription takes what the pilot says of itself, and of others that did not serve it.
func (c *Core) takeDescription(p *pilot, s *taskqueue.Sync) {
	if s.Hello != nil {
		c.fleet.describe(p, *s.Hello)
		c.lookedFor(p, s.LookedFor)
	}
	p.talk.drains, p.talk.polls = s.Draining, !s.Hold
	c.acceptanceChanged(p)
	for _, from := range s.Unserved {
		c.fleet.unserved(p, from)
	}
}

// takeResults takes the ends of attempts, after the hashes of files that were arriving for them.
func (c *Core) takeResults(p *pilot, s *taskqueue.Sync) {
	if len(p.exchange.arriving) > 0 || c.fleet.groupCache(p) { // those end with their attempts
		c.takeHashes(p, s.CacheAdded)
	}
	before := len(p.attempts)
	for i := range s.Ended {
		c.resultArrived(p.id, p, &s.Ended[i])
	}
	c.fleet.countDelivered(p, before-len(p.attempts))
}

// answerIsDue reports whether the pilot is answered even if there is nothing for it to do.
func (c *Core) answerIsDue(p *pilot, s *taskqueue.Sync) bool {
	return len(s.Ended) > 0 || !s.Hold || p.talk.answerDue || c.fleet.mustLeave(p) && !p.toldToLeave ||
		len(s.CacheAdded)+len(s.CacheGone) >= maxUnconfirmed
}

// takeHoldings takes what the pilot runs and what its cache holds: the whole, or the changes since
// an answer that it has; of a pilot that has none the whole is asked for.
func (c *Core) takeHoldings(p *pilot, s *taskqueue.Sync) {
	switch {
	case s.Full:
		c.takeWhole(p, s)
		c.fleet.mustAnswer(p) // so that the changes that follow have an answer to build on
	case !p.talk.synced || p.talk.base == 0 || s.LastAnswer < p.talk.base:
		// The Full that it was registered from may have been a late copy of
		// an old one.
		p.talk.needFull = true
		c.fleet.mustAnswer(p)
	default:
		for _, ref := range s.Started {
			c.started(p, ref)
		}
		c.cacheChanges(p, s)
		if t := p.copies.telling; t != nil && t.number != 0 && s.CacheTold == t.number {
			c.dropUntold(p)
		}
	}
}

// takeHeard notes which answers the pilot has. An attempt that it has heard it is to end or give
// back, and reports neither to run nor how it ended, it never had, or keeps to itself.
func (c *Core) takeHeard(p *pilot, s *taskqueue.Sync) {
	p.ending = slices.DeleteFunc(p.ending, func(e ending) bool { return e.number != 0 && s.LastAnswer >= e.number })
	p.talk.acked = max(p.talk.acked, s.LastAnswer)
	for _, a := range slices.Backward(slices.Clone(p.attempts)) {
		if c.fleet.attempts[a.id] == a && a.leaves() && !a.started && a.told.endNumber != 0 &&
			s.LastAnswer >= a.told.endNumber {
			c.forfeit(a)
		}
	}
}

// toldTooLittle reports whether the pilot has not heard of all that it is to run and to end.
func (p *pilot) toldTooLittle() bool {
	return len(p.ending) > 0 || slices.ContainsFunc(p.attempts, func(a *attempt) bool {
		return a.told.number > p.talk.acked && !a.known() || (a.told.ended || a.told.asked != 0) &&
			a.told.endNumber > p.talk.acked || a.toBegin()
	})
}

// maxUnconfirmed is how many changes of its cache a pilot sends until it is
// answered, so that it need not send them again. A Sync repeats all that no answer
// has confirmed: while an attempt stores thousands of files, each of its Syncs would
// carry all those before.
const maxUnconfirmed = 64

// takeWhole replaces all that is known of the pilot by what it says.
func (c *Core) takeWhole(p *pilot, s *taskqueue.Sync) {
	p.talk.synced, p.talk.needFull = true, false
	said := make(map[taskqueue.AttemptID]bool, len(s.Queued)+len(s.Started))
	for _, ref := range s.Queued {
		said[ref.Attempt] = true
		c.adopt(p, ref, false)
	}
	for _, ref := range s.Started {
		said[ref.Attempt] = true
		c.adopt(p, ref, true)
		c.started(p, ref)
	}
	for _, a := range slices.Clone(p.attempts) {
		if !said[a.id] && (a.known() || a.told.number != 0 && s.LastAnswer >= a.told.number) {
			c.attemptLost(a, "the pilot no longer has it")
		}
	}
	for _, r := range c.runs.ending {
		if r.halted() {
			c.placement.takeBackQueued(p, r)
		}
	}
	p.copies.telling = &telling{told: make(map[taskqueue.FileRef]bool, len(s.CacheAdded))}
	c.cacheChanges(p, s)
	switch {
	case s.Cache == nil:
		c.dropUntold(p)
	case *s.Cache == c.files.copiesOf(p):
		p.copies.telling = nil
		c.endAwaiting(p.id)
	}
	p.copies.hints.incoming = p.cacheLimit() // it follows no order any more
}

// adopt takes over an attempt that an earlier incarnation, or this one before
// it thought the pilot lost, had assigned. One whose job has an end already
// is ended, and so is one of an earlier submission.
func (c *Core) adopt(p *pilot, ref taskqueue.AttemptRef, started bool) {
	if a := c.fleet.attempts[ref.Attempt]; a != nil && a.pilot == p {
		a.adopted = true
		return
	}
	j := c.jobs.find(ref.Job)
	if j != nil && j.original.gang() {
		c.adoptMember(p, j, ref)
		return
	}
	another := j != nil && j.attempt != nil // it has been given out again
	started = started && j != nil && p.mayHaveStarted(j.class)
	if j == nil || c.foreign(ref.Attempt) || !j.live() || c.fleet.attempts[ref.Attempt] != nil ||
		j.dealtWith(ref.Attempt) || another && !started || slices.Contains(p.record.overran, ref.Attempt) {
		c.fleet.endUnknown(p, ref.Attempt)
		return
	}
	p.ending = slices.DeleteFunc(p.ending, func(e ending) bool { return e.attempt == ref.Attempt })
	c.placement.unready(j)
	c.files.unawait(j)
	if j.state < taskqueue.Assigned {
		c.jobs.setState(j, taskqueue.Assigned)
	}
	a := &attempt{
		id: ref.Attempt, job: j, pilot: p, needs: j.class, try: j.tries() + 1, priority: j.effective, adopted: true,
	}
	c.fleet.addAttempt(a)
	for other := a.next; other != nil; other = other.next {
		if started && !other.started && !other.leaves() {
			c.placement.askBack(other) // this one has begun
		}
	}
	if j.step.run.state >= taskqueue.RunStopping {
		c.fleet.endAttempt(a)
	}
}

func (c *Core) started(p *pilot, ref taskqueue.AttemptRef) {
	if c.fleet.attempts[ref.Attempt] == nil && p.ends(ref.Attempt) {
		c.adopt(p, ref, true) // it was forfeited while the pilot began it
	}
	a := c.fleet.attempts[ref.Attempt]
	if a == nil || a.pilot != p || a.started || !p.mayHaveStarted(a.needs) {
		return
	}
	a.started, a.since, p.record.withholds = true, c.now, false
	c.fleet.waitsNoMore(a)
	if a.told.recall {
		a.told.recall = false
		c.fleet.counts.recalls--
	}
	c.looksForOverrun(a)
	if a.gang == nil {
		c.fleet.stagesIn(a)
	}
	if a.job.state == taskqueue.Assigned {
		c.jobs.setState(a.job, taskqueue.Running)
	}
	// No job began before it was submitted. What is charged and bounded counts from now: a pilot may lie.
	ago := max(0, min(ref.Running, time.Duration(c.now-a.job.text.submitted)))
	c.event(taskqueue.Event{Kind: taskqueue.JobStarted, Job: a.job.id, Name: a.job.name, Step: a.job.step.Step,
		Pilot: p.id, Ago: ago})
}

// cacheChanges takes what came into the pilot's cache and what left it.
func (c *Core) cacheChanges(p *pilot, s *taskqueue.Sync) {
	for _, f := range s.CacheGone {
		p.copies.other.Take(f)
		if v := c.files.copied(p, f); v != nil && c.files.copyAt(p, v) == f {
			c.dropCopy(p, v)
		}
		if p.copies.telling != nil {
			delete(p.copies.telling.told, f)
		}
	}
	for _, a := range s.CacheAdded {
		switch v := c.files.copied(p, a.File); {
		case v != nil && v.tag == a.File.Tag:
			c.files.hold(p, v, a.Size)
			c.fleet.arrived(p, v, a.Hash)
		case v != nil:
			// An older copy, and the pilot says so again.
		case p.copies.other.Has(a.File):
		case p.copies.other.Fits(a.File):
			p.copies.other.Set(a.File, a.Size)
			p.copies.hints.incoming += a.Size
		default:
			continue
		}
		if p.copies.telling != nil {
			p.copies.telling.told[a.File] = true
		}
	}
}

// dropUntold ends the telling of a pilot that has told all of its cache: copies that it has not
// told are gone.
func (c *Core) dropUntold(p *pilot) {
	said := p.copies.telling.told
	p.copies.telling = nil
	for _, v := range slices.Clone(p.copies.versions) {
		if !said[c.files.copyAt(p, v)] {
			c.dropCopy(p, v)
		}
	}
	for r := range p.copies.other.All() {
		if !said[r] {
			p.copies.other.Take(r)
		}
	}
	c.endAwaiting(p.id)
}

func (c *Core) answerAll() {
	for _, p := range c.work.answers {
		p.talk.listedAnswer = false
		if p.talk.heldSeq == 0 || p.left {
			continue
		}
		c.reply(p, c.answer(p))
		p.talk.heldSeq, p.talk.answerDue = 0, p.talk.more
		c.fleet.armPilot(p) // it is to call again
		c.fleet.recount(p)
	}
	c.work.answers = c.work.answers[:0]
}

// answer says all that the pilot has not confirmed; so a lost answer needs no
// repair.
func (c *Core) answer(p *pilot) taskqueue.Answer {
	n := c.fleet.nextAnswer()
	if p.talk.base == 0 {
		p.talk.base = n
	}
	a := taskqueue.Answer{
		Number: n, Seen: p.talk.seq, NeedFull: p.talk.needFull, NextSync: c.config.Hold, Lease: c.fleet.lease(p),
		Leave: c.fleet.stop == draining || p.info.Error != "", LeaveNow: c.fleet.stop == stopped, Peers: p.peers(),
	}
	if p.unneeded && !a.Leave {
		a.Leave, a.Why = true, noWork
	}
	size := 0
	p.talk.more = false
	for _, x := range p.attempts {
		if x.told.ended {
			if x.told.endNumber == 0 {
				x.told.endNumber = n
			}
			a.End = append(a.End, x.id)
			continue
		}
		if x.told.asked != 0 && (x.told.endNumber == 0 || x.told.endNumber > p.talk.acked) {
			if x.told.endNumber == 0 {
				x.told.endNumber = n
			}
			a.GiveBack = append(a.GiveBack, x.id)
		}
		if x.toBegin() {
			a.Begin = append(a.Begin, x.start())
		}
		if x.known() || x.told.number != 0 && x.told.number <= p.talk.acked {
			continue
		}
		if size += taskqueue.AssignmentSize(x.job.text.payload, x.job.inputNames, x.job.outputs); size > c.answerSize &&
			len(a.Run) > 0 {
			p.talk.more = true
			continue
		}
		if x.told.number == 0 {
			x.told.number = n
		}
		if a.Run == nil {
			a.Run = c.runSlab.Take(1)[:0]
		}
		a.Run = append(a.Run, taskqueue.Assignment{})
		c.describeTo(&a.Run[len(a.Run)-1], x)
	}
	if t := p.copies.telling; t != nil {
		if t.number == 0 {
			t.number = n
		}
		a.TellCache = t.number
	}
	for i := range p.ending {
		e := &p.ending[i]
		if e.number == 0 {
			e.number = n
		}
		a.End = append(a.End, e.attempt)
	}
	if p.mustLook(&c.tools) {
		a.LookFor, a.LookForNumber = c.tools.names, c.tools.number
	}
	c.placement.addHints(p, &a)
	p.toldToLeave = a.Leave || a.LeaveNow
	p.lease.due = c.now
	if p.talk.polls {
		p.lease.due = c.now.After(a.NextSync)
	}
	p.lease.silentAfter = c.now.After(a.NextSync + a.Lease)
	return a
}

// describeTo says in an answer what the attempt is to run.
func (c *Core) describeTo(a *taskqueue.Assignment, x *attempt) {
	j := x.job
	*a = taskqueue.Assignment{
		Job: j.id, Attempt: x.id, Name: j.name, Step: j.step.Step, Try: x.try, Priority: int(x.priority),
		Payload: j.text.payload,
		Needs:   x.needs.needsOfPilot(), Inputs: c.inputSlab.Take(len(j.requests))[:0],
		Outputs: c.outputSlab.Take(len(j.outputs)), Private: j.fate != nil && j.fate.Private,
		GangPlace: x.place(), Once: j.policy.once,
	}
	if x.task == 0 {
		a.Checkpoint = j.policy.checkpoint
	}
	if x.gang != nil {
		a.Tasks = len(x.gang.members)
	}
	for i := range j.requests {
		r := &j.requests[i]
		if v := r.read; v != nil {
			in := c.files.inputFor(x.pilot, v)
			in.Access = r.access
			if !r.streams() {
				in.Source = c.fleet.sourceFor(x.pilot, v, x)
			}
			a.Inputs = append(a.Inputs, in)
		}
		if v := r.write; v != nil {
			a.Outputs[r.output] = taskqueue.OutputFile{Output: j.outputs[r.output], Version: v.number}
			if j.losesCopies() {
				a.Outputs[r.output].Storage = taskqueue.StorageElement
			}
		}
	}
	if in, ok := j.checkpointInput(); ok && x.task == 0 {
		a.Inputs = append(a.Inputs, in)
	}
}
