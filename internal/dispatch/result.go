package dispatch

import (
	"fmt"
	"slices"
)

// resultArrived takes the end of an attempt, whoever reports it and however
// often.
func (c *Core) resultArrived(by PilotID, p *pilot, r *Result) {
	a := c.fleet.attempts[r.Attempt]
	j := c.queue.find(r.Job)
	if !c.journal.foreign(r.Attempt) {
		for i := range r.Lost {
			c.loseFile(&r.Lost[i])
		}
	}
	switch {
	case c.journal.foreign(r.Attempt):
		c.files.discardForeign(r)
	case j == nil || a != nil && a.job != j:
		c.files.discard(nil, r)
	case a != nil:
		c.fleet.removeAttempt(a)
		c.attemptEnded(by, p, j, r, a)
	case j.committed == r.Attempt || j.counted(r.Attempt):
		// A repetition; it was dealt with.
	case j.live() && (r.Outcome == Succeeded || r.Outcome != Lost && r.Attempt>>32 < AttemptID(c.journal.incarnation)):
		c.attemptEnded(by, p, j, r, nil)
	default:
		c.reject(j, r)
	}
}

// attemptEnded deals with the first report of the end of an attempt; a is nil
// when it had been given up or belongs to an earlier incarnation.
func (c *Core) attemptEnded(by PilotID, p *pilot, j *job, r *Result, a *attempt) {
	switch {
	case !j.live():
		c.reject(j, r)
	case r.Outcome == Succeeded:
		if problem := c.files.checkOutputs(j, r); problem != "" {
			failed := *r
			failed.Outcome, failed.Message = MissingOutput, problem
			c.attemptFailed(by, j, &failed, hostOf(p))
			return
		}
		c.fleet.learn(p, j, &r.Usage)
		c.placement.unready(j)
		c.files.unawait(j)
		c.fleet.endAttempts(j, a)
		c.commitResult(by, p, j, r)
	case r.Outcome == Ended:
		c.files.discard(j, r)
		c.placement.again(j)
	case r.Outcome == InputLost:
		j.itsFate().Private = true
		c.lossCounted(by, j, r, "")
	case r.Outcome == Lost:
		c.lossCounted(by, j, r, hostOf(p))
	default:
		c.attemptFailed(by, j, r, hostOf(p))
	}
}

func hostOf(p *pilot) string {
	if p == nil {
		return ""
	}
	return p.info.Host
}

// reject discards what an attempt wrote, for good: its pilot may say the result
// again when the job is live once more, and the files are gone then.
func (c *Core) reject(j *job, r *Result) {
	c.files.discard(j, r)
	if r.Outcome == Succeeded {
		j.itsFate().remember(r.Attempt)
		c.journal.persistFate(j)
	}
}

// commitResult makes the outputs of an attempt visible, all at once.
func (c *Core) commitResult(by PilotID, p *pilot, j *job, r *Result) {
	if j.again {
		c.commitAgain(p, j, r)
		return
	}
	outputs := c.outputs[:0]
	for i := range r.Outputs {
		w := &r.Outputs[i]
		o := output{LFN: w.LFN, PFN: w.PFN, Size: w.Size, Records: w.Records, Adler32: w.Adler32}
		o.asWanted(j.outputFor(w.LFN))
		outputs = append(outputs, o)
	}
	c.outputs = outputs
	slices.SortFunc(outputs, j.inOrderOfWrites)
	j.committed = r.Attempt
	files := c.commit(j, outputs, p)
	c.event(Event{Kind: JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Files: files})
}

// commit makes the job Done with these outputs, which are in the order of
// Writes. It is the only place where versions become visible.
func (c *Core) commit(j *job, outputs []output, p *pilot) []CommittedFile {
	versions := make([]*version, 0, 8) // on the stack for most jobs
	files := c.fileSlab.Take(len(outputs))
	for i := range outputs {
		o := &outputs[i]
		v := c.files.outputVersion(j, o)
		versions = append(versions, v)
		files[i] = CommittedFile{File: v.ref(), Pattern: o.Pattern, PFN: o.PFN, Size: o.Size, Records: o.Records}
		v.size, v.records, v.adler, v.pfn, v.tag = o.Size, o.Records, o.Adler32, o.PFN, o.tag(j.committed)
		v.identity = j.identityOf(o.LFN)
		c.makeVisible(j, v, p)
	}
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.file.pattern {
			v.state = present
		}
	}
	c.queue.setState(j, Done)
	c.files.leave(j)
	c.journal.persistCommit(j, outputs)
	for _, v := range versions {
		c.files.publish(j, v)
		c.files.superseded(v)
	}
	c.files.unpinAll(j)
	return files
}

// makeVisible is for a version whose copies are set but for the pilot that
// made it.
func (c *Core) makeVisible(j *job, v *version, p *pilot) {
	v.state = present
	c.claim(v, p)
	if v.pfn == "" {
		if p != nil && !p.left {
			c.files.hold(p, v, v.size)
		}
		if !v.hasCopy() {
			v.state = gone
			c.wantForWaiters(v)
			return
		}
	}
	c.files.arrived(v)
}

// claim finds the copies of a version that was just committed among those that
// pilots have told of before: the one that made it and the others of its host,
// or for a result of an earlier run that is in caches only, whoever has it.
func (c *Core) claim(v *version, by *pilot) {
	var among []*pilot
	switch {
	case by != nil && !by.left:
		among = by.host.pilots
	case v.pfn == "":
		among = c.fleet.inOrder()
	}
	r := v.ref()
	r.Tag = v.tag
	for _, p := range among {
		if size, ok := p.other[r]; ok {
			delete(p.other, r)
			c.files.hold(p, v, size)
		}
	}
}

// attemptFailed counts a failure, and has the job tried again if it may.
func (c *Core) attemptFailed(by PilotID, j *job, r *Result, host string) {
	c.files.discard(j, r)
	f := j.itsFate()
	f.remember(r.Attempt)
	if j.attempt != nil && r.Outcome != OutOfMemory {
		// Another attempt of the job still runs; its end decides.
		c.journal.persistFate(j)
		return
	}
	f.Tries++
	f.Reason = r.describe()
	c.placement.unready(j)
	most := j.policy.retry.Attempts
	if most <= 0 {
		most = c.config.Attempts
	}
	if f.Tries >= most || !j.policy.retries(r) {
		c.fleet.endAttempts(j, nil)
		c.finishFailed(by, j, r)
		return
	}
	c.adapt(j, r, host)
	c.queue.backOff(j)
	c.journal.persistFate(j)
	c.placement.setWaiting(j)
	c.event(Event{Kind: JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Reason: f.Reason})
}

// retries says whether a failure of this kind may pass. Codes that the job
// names restrict what the command itself causes; what the site causes is
// always tried again. A program that is not there, or cannot be run, will not
// be there the next time. An input that was changed is no longer what it was, and a
// command that says it succeeded would say so again.
func (p *policy) retries(r *Result) bool {
	codes := p.retry.ExitCodes
	switch r.Outcome {
	case Exited:
		return len(codes) == 0 && r.ExitCode != cannotRun && r.ExitCode != notFound || slices.Contains(codes, r.ExitCode)
	case Signalled:
		return len(codes) == 0 || slices.Contains(codes, 128+r.Signal)
	case OutOfTime:
		return len(codes) == 0
	case InputChanged, MissingOutput:
		return false
	}
	return true
}

// What a shell returns for a program that it cannot run, or cannot find.
const (
	cannotRun = 126
	notFound  = 127
)

// adapt changes what the next attempt needs.
func (c *Core) adapt(j *job, r *Result, host string) {
	f := j.fate
	switch r.Outcome {
	case OutOfMemory:
		factor := j.policy.retry.MemoryFactor
		if factor <= 1 {
			factor = c.config.MemoryFactor
		}
		grown := int64(float64(j.class.key.memory) * factor)
		f.Memory = max(j.class.key.memory, min(grown, c.fleet.mostMemory()))
	case OutOfDisk, StageInFailed, StageOutFailed, Lost:
		f.Avoid = host
	}
}

func (c *Core) finishFailed(by PilotID, j *job, r *Result) {
	n := len(c.effects.Events)
	c.finish(j, Failed, j.fate.Reason)
	e := &c.effects.Events[n]
	e.Pilot, e.Result = by, r
}

// attemptLost is for an attempt whose pilot is gone, or no longer has it.
func (c *Core) attemptLost(a *attempt, reason string) {
	j := a.job
	c.fleet.removeAttempt(a)
	if !j.live() || a.ended {
		c.placement.again(j)
		return
	}
	r := &Result{Job: j.id, Attempt: a.id, Outcome: Lost, Message: reason}
	c.lossCounted(a.pilot.id, j, r, a.pilot.info.Host)
}

// lossCounted is for an attempt that its pilot took with it. That is no fault
// of the job, so some losses do not count as failures. A success that turns up
// later is welcome.
func (c *Core) lossCounted(by PilotID, j *job, r *Result, host string) {
	f := j.itsFate()
	if f.Losses++; f.Losses > c.config.MaxLosses {
		c.attemptFailed(by, j, r, host)
		return
	}
	c.files.discard(j, r)
	f.Reason, f.Avoid = r.describe(), host
	c.journal.persistFate(j)
	c.event(Event{Kind: JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Reason: f.Reason})
	c.placement.again(j)
}

// describe says in one line how an attempt ended.
func (r *Result) describe() string {
	var how string
	switch r.Outcome {
	case Exited:
		how = fmt.Sprintf("exit code %d", r.ExitCode)
	case Signalled:
		how = fmt.Sprintf("signal %d", r.Signal)
	default:
		how = r.Outcome.String()
	}
	if r.Message != "" {
		how += ": " + r.Message
	}
	return how
}
