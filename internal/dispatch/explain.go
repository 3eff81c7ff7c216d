package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/fifo"
)

// Explanation says why a job is not running.
type Explanation struct {
	taskqueue.JobView
	Lines    []string          // for a person, one reason a line
	WaitsFor []WaitsFor        // requests before it and versions that are not there
	Taken    *taskqueue.Origin // who made the result that it has taken, as in [taskqueue.JobDetail]
	Missing  []string          // what no known pilot, nor one that a site could start, has

	unnamed int // others that it waits for, beyond maxExplained
}

// WaitsFor is a job that another waits for, and the file that it is about.
type WaitsFor struct {
	File  taskqueue.FileRef
	Job   taskqueue.JobID
	Name  string
	State taskqueue.State
}

// maxExplained bounds the jobs that one explanation names.
const maxExplained = 20

// Explain says what a job waits for.
func (c *Core) Explain(id taskqueue.JobID) (Explanation, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return Explanation{}, false
	}
	e := Explanation{JobView: c.view(j), Taken: c.journal.originOf(j)}
	switch j.state {
	case taskqueue.Waiting:
		c.explainWaiting(j, &e)
	case taskqueue.Ready:
		c.explainReady(j, &e)
	case taskqueue.Blocked:
		e.say("%s", c.jobs.blockedBy(j))
	case taskqueue.Assigned, taskqueue.Running:
		c.explainAttempts(j, &e)
	default:
		explainEnd(&e)
		for _, v := range c.files.lostOutputs(j) {
			e.say("the stored file of %s was lost; it is made again when a job needs it, or with fairway retry", v.file.lfn)
		}
		c.explainTemporary(j, &e)
	}
	return e, true
}

// explainEnd tells how a job came to a state that it does not leave by itself.
func explainEnd(e *Explanation) {
	switch {
	case e.Reason != "": // also of one that was done, and whose outputs were lost
		e.say("%s", e.Reason)
	case e.Reused && e.Taken != nil:
		e.say("nothing was executed: its result is that of %s", e.Taken)
	case e.Reused:
		e.say("nothing was executed: an earlier run had its result")
	case e.Committed != 0:
		e.say("its outputs are committed")
	}
}

// explainTemporary tells what became of the temporary outputs of a job.
func (c *Core) explainTemporary(j *job, e *Explanation) {
	told := 0
	for _, v := range c.files.writtenBy(j) {
		if o := j.outputFor(v.file.lfn); o == nil || !o.Temporary || !v.committed() || v.tag == lostTag {
			continue
		}
		if told++; told > maxExplained {
			continue
		}
		switch {
		case v.pfn == "":
			e.say("%s is temporary, and was removed from storage: all jobs that read it are done", v.file.lfn)
		case !v.hasReader && v.readersKnown():
			e.say("%s is not removed, although its step says temporary: no job reads it", v.file.lfn)
		case v.pins > 0:
			e.say("%s is temporary; jobs that read it and are not done: %d", v.file.lfn, v.pins)
		default:
			e.say("%s is temporary; further jobs may come that read it", v.file.lfn)
		}
	}
	if told > maxExplained {
		e.say("and so on: %d more", told-maxExplained)
	}
}

func (e *Explanation) say(format string, args ...any) {
	e.Lines = append(e.Lines, fmt.Sprintf(format, args...))
}

func (e *Explanation) waitsFor(file taskqueue.FileRef, j *job, format string, args ...any) {
	if len(e.WaitsFor) == maxExplained {
		e.unnamed++
		return
	}
	e.WaitsFor = append(e.WaitsFor, WaitsFor{file, j.id, j.name, j.state})
	e.say("%s job %s, which is %v", fmt.Sprintf(format, args...), j.name, j.state)
}

func (c *Core) explainWaiting(j *job, e *Explanation) {
	var missing []*version
	reads := 0
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			reads++
			if v.state != present && v.writer != nil {
				missing = append(missing, v)
			}
		}
	}
	many := len(missing) > fewMissing
	for i := range j.requests {
		j.requests[i].explain(e, !many)
	}
	if many {
		e.explainMissing(missing, reads)
	}
	if e.unnamed > 0 {
		e.say("and so on: %d more", e.unnamed)
	}
	if w := c.jobs.twins.executed(j); w != nil && c.jobs.twins.follows(j) {
		o := w.origin()
		e.say("the same job is %v as %s; its result is taken when it has one, and otherwise this one is executed", w.state,
			&o)
	}
	if j.fate != nil && j.fate.backingOff {
		e.say("tried again %s, because the last attempt ended with: %s", c.when(j.fate.NotBefore), j.fate.Reason)
	}
}

// explain names the jobs that stand before the request, but for those with which it shares the
// file, and, if writers are to be told of, the writer of a version that is not there.
func (r *request) explain(e *Explanation, writers bool) {
	conflicts := r.Mode() == fifo.Write
	for b := r.Prev(); b != nil && !r.Granted(); b = b.Prev() {
		conflicts = conflicts || b.Mode() == fifo.Write
		if conflicts && (writers || r.read == nil || b.Owner.job != r.read.writer) {
			e.waitsFor(b.Owner.about(), b.Owner.job, "its request to %s %s stands behind that of", r.Mode(), r.file().lfn)
		}
	}
	if v := r.read; writers && v != nil && (!r.Queued() || r.Granted()) && v.state != present && v.writer != nil {
		e.waitsFor(v.ref(), v.writer, "version %d of %s, which it reads, is to be made by", v.number, v.file.lfn)
	}
}

// fewMissing is how many missing inputs are told of one by one.
const fewMissing = 3

// explainMissing tells of many inputs how many are missing, and how the jobs stand that make them.
func (e *Explanation) explainMissing(missing []*version, reads int) {
	byState := map[taskqueue.State][]string{}
	for _, v := range missing {
		w := v.writer
		if len(e.WaitsFor) < maxExplained {
			e.WaitsFor = append(e.WaitsFor, WaitsFor{v.ref(), w.id, w.name, w.state})
		}
		byState[w.state] = append(byState[w.state], w.name)
	}
	var states []string
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		names := byState[state]
		text := names[0]
		if len(names) > 1 {
			text = fmt.Sprintf("%d jobs, first %s", len(names), names[0])
		}
		states = append(states, fmt.Sprintf("%v: %s", state, text))
	}
	e.say("%d of %d inputs are missing; of the jobs that make them are %s", len(missing), reads,
		strings.Join(states, "; "))
}

// explainAttempts says where the attempts of a job are. Those of a gang come by task.
func (c *Core) explainAttempts(j *job, e *Explanation) {
	var all []*attempt
	for a := j.attempt; a != nil; a = a.next {
		all = append(all, a)
	}
	g := c.fleet.gangs[j]
	if g == nil {
		for _, a := range all {
			c.explainAttempt(a, e)
		}
		return
	}
	slices.SortFunc(all, func(a, b *attempt) int { return cmp.Compare(a.id, b.id) })
	told := 0
	for _, a := range all {
		if told++; told <= maxExplained {
			c.explainAttempt(a, e)
		}
	}
	for task, done := range g.done {
		if done {
			if told++; told <= maxExplained {
				e.say("task %d has succeeded; the job is done when all have", task)
			}
		}
	}
	if told > maxExplained {
		e.say("and so on: %d more tasks", told-maxExplained)
	}
}

// explainAttempt says where an attempt is, and why it has not started there.
func (c *Core) explainAttempt(a *attempt, e *Explanation) {
	where := fmt.Sprintf("pilot %s (host %s)", a.pilot.id, a.pilot.info.Host)
	if p := a.pilot; p.lease.silent != 0 {
		e.say("its %s has been silent for %v; what it has begun is given out again in %v", where,
			time.Duration(c.now-p.lease.silent).Round(time.Second), c.until(p.lease.silentAfter))
	}
	what, task := fmt.Sprintf("attempt %d", a.try), ""
	if a.gang != nil {
		what, task = fmt.Sprintf("task %d of attempt %d", a.task, a.try), fmt.Sprintf("task %d ", a.task)
	}
	phase := a.phase()
	defer a.explainWaits(e)
	switch {
	case a.told.ended:
		e.say("%s is being ended by %s", what, where)
	case phase == taskqueue.PhaseStaging:
		e.say("%s gets its inputs and ports on %s; the commands begin when all tasks have theirs", what, where)
	case phase == taskqueue.PhaseReady:
		e.say("%s is ready on %s; the commands begin when all tasks are", what, where)
	case phase == taskqueue.PhaseRunning:
		e.say("%s runs on %s", what, where)
	case a.waitsItsTurn():
		e.say("%swaits at %s for its turn, behind %s", task, where, a.before())
	default:
		e.say("%swas given to %s, which has not started it yet", task, where)
	}
}

// before names the first job that the pilot was given before this one, and
// counts the others.
func (a *attempt) before() string {
	before := slices.DeleteFunc(slices.Clone(a.pilot.attempts), func(b *attempt) bool {
		return b.told.ended ||
			!b.precedes(a)
	})
	if len(before) == 0 {
		return "what is being ended there"
	}
	first := before[0].job
	text := fmt.Sprintf("job %s, which is %v", first.name, first.state)
	if first.id.Run() != a.job.id.Run() { // which may be another user's
		text = fmt.Sprintf("a job of another run, which is %v", first.state)
	}
	if more := len(before) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// about is the version that a request is about.
func (r *request) about() taskqueue.FileRef {
	if r.write != nil {
		return r.write.ref()
	}
	return r.read.ref()
}
