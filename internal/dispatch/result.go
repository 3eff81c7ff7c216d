package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// resultArrived takes the end of an attempt, whoever reports it and however
// often. Its stages:
//
//  1. Whose is it, and does it count? Here.
//  2. Are its outputs those that the job promised? checkOutputs.
//  3. The first success of a job is committed, by commitResult. Anything else is
//     a failure, by attemptFailed, or a loss, by lossCounted.
//  4. A job that ends lets go of its requests and lists in the worklists who waits for it,
//     and that is recorded: commit and finish, in commit.go.
//  5. propagate looks at those who are listed when the input is taken.
func (c *Core) resultArrived(by taskqueue.PilotID, p *pilot, r *taskqueue.Result) {
	if c.foreign(r.Attempt) || c.runs.byID[r.Job.Run()] == nil {
		c.files.discardForeign(r)
		return
	}
	j, a := c.jobs.find(r.Job), c.fleet.attempts[r.Attempt]
	for i := range r.Lost {
		if j != nil {
			c.loseCheckpoint(j, &r.Lost[i])
		}
		if lost := r.Lost[i]; j != nil && j.reads(lost.File) { // of other files its pilot has not been told
			lost.File.Run = r.Job.Run()
			if lost.PFN == "" {
				c.loseCopies(p, lost.File)
			} else {
				c.loseFile(&lost)
			}
		}
	}
	if j == nil || a != nil && a.job != j {
		c.files.discard(nil, r)
		return
	}
	if j.original.gang() {
		if r, by = c.memberEnded(by, j, a, r); r != nil {
			c.concluded(by, c.fleet.pilots[by], j, nil, r)
		}
		return
	}
	counts := true
	if a != nil {
		a.took = r.Usage.Took()
		if r.Outcome != taskqueue.Ended {
			a.pilot.record.withholds = false // it has begun one
		}
		c.fleet.removeAttempt(a)
	} else {
		// It had been given up, belongs to an earlier incarnation, or was dealt with.
		if j.committed == r.Attempt || j.dealtWith(r.Attempt) {
			return
		}
		counts = r.Outcome == taskqueue.Succeeded || r.Outcome != taskqueue.Lost &&
			r.Attempt>>32 < taskqueue.AttemptID(c.journal.incarnation) ||
			j.attempt == nil && j.savedBy(r) != nil && (j.saved() == nil || r.Attempt > j.saved().Attempt)
	}
	if !counts || !j.live() {
		c.files.discard(j, r)
		if r.Outcome == taskqueue.Succeeded {
			// For good: its pilot may say the result again when the job is live once
			// more, and the files are gone then.
			j.itsFate().remember(r.Attempt)
			c.journal.persistFate(j)
		}
		return
	}
	c.concluded(by, p, j, a, r)
}

// concluded takes a result that counts, of a job that is live; a is the attempt if that is known.
func (c *Core) concluded(by taskqueue.PilotID, p *pilot, j *job, a *attempt, r *taskqueue.Result) {
	host := ""
	if p != nil {
		host = p.host.name
	}
	if c.takeCheckpoint(by, j, r) {
		return
	}
	switch r.Outcome {
	case taskqueue.Succeeded:
		if problem := c.files.checkOutputs(j, r); problem != "" {
			failed := *r
			failed.Outcome, failed.Message = taskqueue.MissingOutput, problem
			c.failed(by, p, j, &failed, host)
			return
		}
		c.commitResult(by, p, j, r)
	case taskqueue.Ended:
		c.files.discard(j, r)
		c.placement.requeue(j)
		if a != nil && a.told.taker != nil {
			c.placement.givenBack = append(c.placement.givenBack, a)
		}
	case taskqueue.InputLost:
		j.itsFate().Private = true
		c.lossCounted(by, j, r, "")
	case taskqueue.Lost:
		c.lossCounted(by, j, r, host)
	default:
		c.failed(by, p, j, r, host)
	}
}

// failed counts a failure as one of the job, or of the node where that is known to be to blame.
func (c *Core) failed(by taskqueue.PilotID, p *pilot, j *job, r *taskqueue.Result, host string) {
	if c.nodeFailed(p, j, r) {
		j.itsFate().remember(r.Attempt)
		c.lossCounted(by, j, r, host)
		return
	}
	c.attemptFailed(by, j, r, host)
}

// foreign reports whether an attempt belongs to a store that is lost: to another job
// that bore the same number, if any does.
func (c *Core) foreign(id taskqueue.AttemptID) bool {
	incarnation := uint64(id >> 32)
	return incarnation < c.journal.since || incarnation > c.journal.incarnation
}

// checkOutputs says what is wrong with the outputs of a successful attempt.
func (fs *files) checkOutputs(j *job, r *taskqueue.Result) string {
	find := r.ByLFN()
	for v := range j.writes {
		if !v.file.pattern && find(v.file.lfn) == nil {
			return fmt.Sprintf("output %s was not written", v.file.lfn)
		}
	}
	for i := range r.Outputs {
		if w := &r.Outputs[i]; find(w.LFN) != w {
			return fmt.Sprintf("output %s is reported twice", w.LFN)
		}
	}
	own := taskqueue.Version(j.id.Number()) // of what it writes through patterns
	for i := range r.Outputs {
		w := &r.Outputs[i]
		o := j.outputFor(w.LFN)
		switch {
		case o == nil:
			return fmt.Sprintf("%s was written, which the job does not name as an output", w.LFN)
		case o.Storage == taskqueue.StorageElement && w.PFN == "":
			return fmt.Sprintf("output %s was not stored", w.LFN)
		case !o.Pattern:
			continue
		}
		f := j.files().Find(w.LFN)
		if f == nil {
			continue
		}
		if other := f.chosenBefore(j); other != nil {
			return taskqueue.TwoWriters(w.LFN, "job "+other.name, "job "+j.name)
		}
		for _, v := range f.versions {
			if v.writer == j {
				continue
			}
			if v.writer != nil && !v.committed() && v.number != taskqueue.Version(v.writer.id.Number()) {
				return fmt.Sprintf("%s, written through the pattern %s, is also written by job %s: give them different names",
					w.LFN, o.LFN, v.writer.name)
			}
			if before := v.writer == nil || v.writer.id < j.id; v.number == own || before != (v.number < own) {
				return fmt.Sprintf("%s, written through the pattern %s, exists in a version that would come after it", w.LFN, o.LFN)
			}
		}
	}
	if j.regenerating {
		for _, v := range fs.matched[j.id] {
			if find(v.file.lfn) == nil {
				return fmt.Sprintf("%s was written by the attempt before, but not by this one", v.file.lfn)
			}
		}
	}
	return ""
}

// Writers of names that are known before stand in the FIFO of the file. Names
// that are chosen by content have no such order: which of two versions a reader
// got would depend on which job ended first. So such a file has one writer.

// chosenBefore is another job that chose to write the file and was committed. What
// j was committed with itself it may write again.
func (f *file) chosenBefore(j *job) *job {
	if own := f.version(taskqueue.Version(j.id.Number())); own != nil && own.writer == j {
		return nil
	}
	for _, v := range f.versions {
		if v.writer != nil && v.committed() && v.writer.outputFor(f.lfn).Pattern {
			return v.writer
		}
	}
	return nil
}

// attemptFailed counts a failure, and has the job tried again if it may.
func (c *Core) attemptFailed(by taskqueue.PilotID, j *job, r *taskqueue.Result, host string) {
	c.files.discard(j, r)
	f := j.itsFate()
	f.remember(r.Attempt)
	if j.attempt != nil && r.Outcome != taskqueue.OutOfMemory {
		// Another attempt of the job still runs; its end decides.
		c.journal.persistFate(j)
		return
	}
	f.Tries++
	f.Reason = c.fleet.failureOn(r, host)
	c.placement.unready(j)
	most := j.policy.retry.Attempts
	if most <= 0 {
		most = c.config.Attempts
	}
	if f.Tries >= most || !j.policy.retries(r, host != "" && c.fleet.elsewhere(j.class, host)) {
		c.fleet.endAttempts(j)
		n := len(c.effects.Events)
		c.finish(j, taskqueue.Failed, f.Reason)
		e := &c.effects.Events[n]
		e.Pilot, e.Result = by, r
		return
	}
	c.adapt(by, j, r, host)
	c.jobs.backOff(j)
	c.journal.persistFate(j)
	c.placement.setWaiting(j)
	c.event(taskqueue.Event{Kind: taskqueue.JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r,
		Reason: f.Reason})
}

// retries reports whether a failure of this kind may pass. Codes that the job
// names restrict what the command itself causes; what the site causes is
// always tried again. A program that is not there, or cannot be run, will not
// be there the next time, but may be on another node; and a command that says it succeeded, and wrote
// nothing, would say so again, but may do better there. An input that was changed is no longer what it was,
// and a command that writes to it would do so again.
func (p *policy) retries(r *taskqueue.Result, elsewhere bool) bool {
	codes := p.retry.ExitCodes
	switch r.Outcome {
	case taskqueue.Exited:
		mayPass := elsewhere || r.ExitCode != cannotRun && r.ExitCode != notFound
		return len(codes) == 0 && mayPass || slices.Contains(codes, r.ExitCode)
	case taskqueue.Signalled:
		return len(codes) == 0 || slices.Contains(codes, 128+r.Signal)
	case taskqueue.OutOfTime:
		return len(codes) == 0
	case taskqueue.MissingOutput:
		return len(codes) == 0 && elsewhere
	case taskqueue.InputChanged:
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
func (c *Core) adapt(by taskqueue.PilotID, j *job, r *taskqueue.Result, host string) {
	f := j.fate
	switch r.Outcome {
	case taskqueue.OutOfMemory:
		factor := j.policy.retry.MemoryFactor
		if factor <= 1 {
			factor = c.config.MemoryFactor
		}
		grown := int64(float64(j.class.key.memory) * factor)
		f.Memory = max(j.class.key.memory, min(grown, c.fleet.mostMemory()))
	case taskqueue.StageInFailed, taskqueue.StageOutFailed:
		if p := c.fleet.pilots[by]; p == nil || f.Tries > 1 || c.placement.weigh(p, j) == 0 && !c.placement.belongsTo(j, p) {
			f.Avoid = host
		}
	case taskqueue.Exited, taskqueue.Signalled, taskqueue.MissingOutput:
		if c.fleet.elsewhere(j.class, host) {
			f.Avoid = host
			c.armNodes(c.fleet.nodes.comes)
		}
	case taskqueue.OutOfDisk, taskqueue.Lost:
		f.Avoid = host
	}
}

// mostMemory is what the largest known pilot has.
func (fl *fleet) mostMemory() int64 {
	var most int64
	for _, s := range fl.shapes {
		if s.most.Memory <= most {
			continue
		}
		for _, p := range s.pilots {
			most = max(most, p.info.Has.Memory)
		}
	}
	return max(most, fl.monitor.mostMemory())
}

// reads reports whether a file is an input of the job.
func (j *job) reads(f taskqueue.FileRef) bool {
	return slices.ContainsFunc(j.requests, func(r request) bool {
		return r.read != nil && r.read.file.lfn == f.LFN && r.read.number == f.Version
	})
}

// attemptLost is for an attempt whose pilot is gone, or no longer has it.
func (c *Core) attemptLost(a *attempt, reason string) {
	if c.fleet.attempts[a.id] != a {
		return // with another one of its gang
	}
	j := a.job
	g := c.fleet.current(a)
	c.fleet.removeAttempt(a)
	if g != nil {
		c.placement.disband(g)
	}
	if !j.live() || a.told.ended {
		c.placement.requeue(j)
		return
	}
	r := &taskqueue.Result{Job: j.id, Attempt: a.id, GangPlace: a.place(), Outcome: taskqueue.Lost, Message: reason}
	c.lossCounted(a.pilot.id, j, r, a.pilot.info.Node())
}

// lossCounted is for an attempt that its pilot took with it. That is no fault
// of the job, so some losses do not count as failures. A success that turns up
// later is welcome.
func (c *Core) lossCounted(by taskqueue.PilotID, j *job, r *taskqueue.Result, host string) {
	f := j.itsFate()
	if f.Losses++; f.Losses > c.config.MaxLosses {
		c.attemptFailed(by, j, r, host)
		return
	}
	c.files.discard(j, r)
	f.Reason, f.Avoid = c.fleet.failureOn(r, host), host
	c.journal.persistFate(j)
	c.event(taskqueue.Event{Kind: taskqueue.JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r,
		Reason: f.Reason})
	c.placement.requeue(j)
}

// failureOn says in one line how an attempt ended and, where there are several nodes, on which.
func (fl *fleet) failureOn(r *taskqueue.Result, node string) string {
	if node == "" || len(fl.hosts) < 2 {
		return r.Describe("")
	}
	return r.Describe(" on " + hostOf(node))
}

// hostOf is the host of a node, as people know it.
func hostOf(node string) string {
	host, _, _ := strings.Cut(node, taskqueue.NodeSeparator)
	return host
}

// discard removes what an attempt wrote that is not committed. Physical names
// are unique to the attempt, so nothing else is hit; what the job was committed with is
// kept all the same.
func (fs *files) discard(j *job, r *taskqueue.Result) {
	if len(r.Outputs) == 0 {
		return
	}
	used := make(map[string]bool)
	if j != nil && j.committed != 0 {
		for _, v := range fs.writtenBy(j) {
			used[v.pfn] = true
		}
	}
	for _, w := range r.Outputs {
		if w.PFN != "" && !used[w.PFN] {
			fs.remove(w.PFN)
		}
	}
}

// discardForeign removes what an attempt of a run wrote that is known no more, unless
// that was committed there: then it may be a result that a later run takes.
func (fs *files) discardForeign(r *taskqueue.Result) {
	committed := make(map[string]bool)
	for pfn := range fs.journal.results.ResultFiles {
		committed[pfn] = true
	}
	for _, run := range fs.runs.inOrder {
		for i := range r.Outputs {
			if f := run.files.Find(r.Outputs[i].LFN); f != nil {
				for _, v := range f.versions {
					committed[v.pfn] = true
				}
			}
		}
	}
	for i := range r.Outputs {
		if w := &r.Outputs[i]; w.PFN != "" && !committed[w.PFN] {
			fs.remove(w.PFN)
		}
	}
}

// output is a written version as it is recorded.
type output = records.Output
