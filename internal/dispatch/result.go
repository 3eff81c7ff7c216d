package dispatch

import (
	"fmt"
	"slices"
)

// resultArrived takes the end of an attempt, whoever reports it and however
// often. Its stages:
//
//  1. Whose is it, and does it count? Here.
//  2. Are its outputs those that the job promised? checkOutputs.
//  3. The first success of a job is committed, by commitResult. Anything else is
//     a failure, by attemptFailed, or a loss, by lossCounted.
//  4. Who waits for the outputs, or is to try again, is listed in the worklists,
//     and looked at by propagate when the input is taken.
func (c *Core) resultArrived(by PilotID, p *pilot, r *Result) {
	if c.journal.foreign(r.Attempt) || c.runs.byID[r.Job.Run()] == nil {
		c.files.discardForeign(r)
		return
	}
	j, a := c.jobs.find(r.Job), c.fleet.attempts[r.Attempt]
	for i := range r.Lost {
		if lost := r.Lost[i]; j != nil && j.reads(lost.File) { // of other files its pilot has not been told
			lost.File.Run = r.Job.Run()
			c.loseFile(&lost)
		}
	}
	if j == nil || a != nil && a.job != j {
		c.files.discard(nil, r)
		return
	}
	counts := true
	if a != nil {
		c.fleet.removeAttempt(a)
	} else {
		// It had been given up, belongs to an earlier incarnation, or was dealt with.
		if j.committed == r.Attempt || j.dealtWith(r.Attempt) {
			return
		}
		counts = r.Outcome == Succeeded || r.Outcome != Lost && r.Attempt>>32 < AttemptID(c.journal.incarnation)
	}
	if !counts || !j.live() {
		c.reject(j, r)
		return
	}
	host := ""
	if p != nil {
		host = p.info.node()
	}
	switch r.Outcome {
	case Succeeded:
		if problem := c.files.checkOutputs(j, r); problem != "" {
			failed := *r
			failed.Outcome, failed.Message = MissingOutput, problem
			c.attemptFailed(by, j, &failed, host)
			return
		}
		c.commitResult(by, p, j, r)
	case Ended:
		c.files.discard(j, r)
		c.placement.requeue(j)
	case InputLost:
		j.itsFate().Private = true
		c.lossCounted(by, j, r, "")
	case Lost:
		c.lossCounted(by, j, r, host)
	default:
		c.attemptFailed(by, j, r, host)
	}
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

// commitResult makes the outputs of an attempt visible, all at once. No other
// attempt of the job counts from here on.
func (c *Core) commitResult(by PilotID, p *pilot, j *job, r *Result) {
	c.fleet.learn(p, j, &r.Usage)
	c.placement.unready(j)
	c.files.unawait(j)
	c.fleet.endAttempts(j)
	if j.regenerating {
		c.commitRegenerated(p, j, r)
		return
	}
	j.committed = r.Attempt
	files := c.commit(j, c.files.outputsOf(j, r), p)
	c.event(Event{Kind: JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Files: files})
}

// commit makes the job Done with these outputs, which are in the order of
// Writes; p is the pilot that has them, or nil.
func (c *Core) commit(j *job, outputs []output, p *pilot) []CommittedFile {
	c.jobs.setState(j, Done)
	files, absent := c.files.commit(j, outputs, p, c.holders(p, outputs))
	for _, v := range absent {
		c.wantForWaiters(v)
	}
	return files
}

// holders are the pilots that may have told of copies of these outputs: those of
// the host of the pilot that made them, or for a result of an earlier run that is
// in caches only, all.
func (c *Core) holders(p *pilot, outputs []output) []*pilot {
	switch {
	case p != nil && !p.left:
		return p.host.pilots
	case slices.ContainsFunc(outputs, func(o output) bool { return o.PFN == "" }):
		return c.fleet.inOrder()
	}
	return nil
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
		c.fleet.endAttempts(j)
		n := len(c.effects.Events)
		c.finish(j, Failed, f.Reason)
		e := &c.effects.Events[n]
		e.Pilot, e.Result = by, r
		return
	}
	c.adapt(by, j, r, host)
	c.jobs.backOff(j)
	c.journal.persistFate(j)
	c.placement.setWaiting(j)
	c.event(Event{Kind: JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Reason: f.Reason})
}

// retries reports whether a failure of this kind may pass. Codes that the job
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

// adapt changes what the next attempt needs. Nobody knows whether the host or the storage
// element is to blame for a file that did not come or go. So the first time the job may stay
// where its input is, or what will be read with its outputs: if the element was to blame, that
// need not be read again.
func (c *Core) adapt(by PilotID, j *job, r *Result, host string) {
	f := j.fate
	switch r.Outcome {
	case OutOfMemory:
		factor := j.policy.retry.MemoryFactor
		if factor <= 1 {
			factor = c.config.MemoryFactor
		}
		grown := int64(float64(j.class.key.memory) * factor)
		f.Memory = max(j.class.key.memory, min(grown, c.fleet.mostMemory()))
	case StageInFailed, StageOutFailed:
		if p := c.fleet.pilots[by]; p == nil || f.Tries > 1 || c.placement.weigh(p, j) == 0 && !c.placement.belongsTo(j, p) {
			f.Avoid = host
		}
	case OutOfDisk, Lost:
		f.Avoid = host
	}
}

// reads reports whether a file is an input of the job.
func (j *job) reads(f FileRef) bool {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && v.file.lfn == f.LFN && v.number == f.Version {
			return true
		}
	}
	return false
}

// attemptLost is for an attempt whose pilot is gone, or no longer has it.
func (c *Core) attemptLost(a *attempt, reason string) {
	j := a.job
	c.fleet.removeAttempt(a)
	if !j.live() || a.ended {
		c.placement.requeue(j)
		return
	}
	r := &Result{Job: j.id, Attempt: a.id, Outcome: Lost, Message: reason}
	c.lossCounted(a.pilot.id, j, r, a.pilot.info.node())
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
	c.placement.requeue(j)
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
