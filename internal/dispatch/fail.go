package dispatch

import (
	"fmt"
	"slices"
)

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

func (c *Core) finishFailed(by PilotID, j *job, r *Result) {
	n := len(c.effects.Events)
	c.finish(j, Failed, j.fate.Reason)
	e := &c.effects.Events[n]
	e.Pilot, e.Result = by, r
}

func (f *fate) remember(id AttemptID) {
	if len(f.Attempts) == maxRemembered {
		f.Attempts = slices.Delete(f.Attempts, 0, 1)
	}
	f.Attempts = append(f.Attempts, id)
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

// mostMemory is what the largest known pilot has.
func (fl *fleet) mostMemory() int64 {
	var most int64
	for _, s := range fl.shapes {
		if s.pilots > 0 {
			most = max(most, s.has.Memory)
		}
	}
	return max(most, fl.monitor.mostMemory())
}

// setClass finds what the job needs now, after what happened to it.
func (pl *placement) setClass(j *job) {
	j.class = j.asked
	at := pl.boundTo(j)
	if f := j.fate; f != nil || at != (place{}) {
		j.class = pl.queue.variant(j.asked, func(k *classKey) {
			if f != nil {
				k.memory = max(k.memory, f.Memory)
				if at == (place{}) {
					k.avoid = f.Avoid
				}
			}
			k.host, k.pilot = at.host, at.pilot
		})
	}
}

// backOff keeps the job from being ready for a while that doubles with each
// failure.
func (q *queue) backOff(j *job) {
	pause := j.policy.retry.Backoff
	if pause <= 0 {
		pause = q.config.Backoff
	}
	for n := 1; n < j.fate.Tries && pause < q.config.MaxBackoff; n++ {
		pause *= 2
	}
	j.fate.NotBefore = q.now.after(min(pause, q.config.MaxBackoff))
	q.armBackoff(j)
}

func (q *queue) armBackoff(j *job) {
	j.fate.backingOff = true
	q.timers.add(timer{at: j.fate.NotBefore, kind: jobTimer, job: j})
}

func (q *queue) backoffOver(j *job) {
	if f := j.fate; f != nil && f.backingOff && f.NotBefore <= q.now {
		f.backingOff = false
		q.work.examine = append(q.work.examine, j)
	}
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

// again has a job without attempts matched anew, at once.
func (pl *placement) again(j *job) {
	if j.live() && j.attempt == nil && j.state != Ready {
		pl.setWaiting(j)
		pl.work.examine = append(pl.work.examine, j)
	}
}

func (pl *placement) setWaiting(j *job) {
	if j.state == Assigned || j.state == Running || j.state == Ready {
		pl.unready(j)
		pl.queue.setState(j, Waiting)
	}
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
