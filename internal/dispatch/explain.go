package dispatch

import (
	"fmt"
	"time"
)

// Explanation says why a job is not running.
type Explanation struct {
	JobView
	Lines    []string   // for a person, one reason a line
	WaitsFor []WaitsFor // requests before it and versions that are not there
	Missing  []string   // what no known pilot, nor one that a site could start, has
}

// WaitsFor is a job that another waits for, and the file that it is about.
type WaitsFor struct {
	File  FileRef
	Job   JobID
	Name  string
	State State
}

// maxExplained bounds the jobs that one explanation names.
const maxExplained = 20

// Explain says what a job waits for.
func (c *Core) Explain(id JobID) (Explanation, bool) {
	j := c.jobOf(id)
	if j == nil {
		return Explanation{}, false
	}
	e := Explanation{JobView: c.view(j)}
	switch j.state {
	case Waiting:
		c.explainWaiting(j, &e)
	case Ready:
		c.explainReady(j, &e)
	case Blocked:
		e.say("%s", c.blockedBy(j))
	case Assigned, Running:
		for _, a := range e.Attempts {
			e.say("%v as attempt %d on pilot %s (host %s)", j.state, a.Attempt, a.Pilot, a.Host)
		}
	default:
		explainEnd(&e)
	}
	return e, true
}

// explainEnd tells how a job came to a state that it does not leave by itself.
func explainEnd(e *Explanation) {
	switch {
	case e.Reused:
		e.say("nothing was executed: an earlier run had its result")
	case e.Committed != 0:
		e.say("its outputs are committed")
	case e.Reason != "":
		e.say("%s", e.Reason)
	}
}

func (e *Explanation) say(format string, args ...any) {
	e.Lines = append(e.Lines, fmt.Sprintf(format, args...))
}

func (c *Core) explainWaiting(j *job, e *Explanation) {
	for i := range j.requests {
		r := &j.requests[i]
		for b := r.Prev(); b != nil && !r.Granted() && len(e.WaitsFor) < maxExplained; b = b.Prev() {
			other := b.Owner.job
			e.WaitsFor = append(e.WaitsFor, WaitsFor{b.Owner.place(), other.id, other.name, other.state})
			e.say("its request to %s %s stands behind that of job %s, which is %v", r.Mode(), r.file().lfn, other.name, other.state)
		}
		if v := r.read; v != nil && (!r.Queued() || r.Granted()) && v.state != present && v.writer != nil {
			e.WaitsFor = append(e.WaitsFor, WaitsFor{v.ref(), v.writer.id, v.writer.name, v.writer.state})
			e.say("version %d of %s, which it reads, is to be made by job %s, which is %v", v.number, v.file.lfn, v.writer.name, v.writer.state)
		}
	}
	if j.fate != nil && j.fate.backingOff {
		e.say("tried again in %v, because the last attempt ended with: %s", c.until(j.fate.NotBefore), j.fate.Reason)
	}
}

// place is the version that a request is about.
func (r *request) place() FileRef {
	if r.write != nil {
		return r.write.ref()
	}
	return r.read.ref()
}

// until is the time from the last step to an instant, not below zero.
func (c *Core) until(at instant) time.Duration {
	return max(0, time.Duration(at-c.now)).Round(time.Millisecond)
}
