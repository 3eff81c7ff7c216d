package dispatch

import (
	"math"

	"fairway/internal/taskqueue"
)

// ownPriority is the priority of a job itself: what a person has given it, or what it was submitted with and what was
// added for its run.
func (j *job) ownPriority() int32 {
	if j.fate != nil && j.fate.Priority != nil {
		return *j.fate.Priority
	}
	return int32(min(max(int64(j.priority)+int64(j.step.run.raised), math.MinInt32), math.MaxInt32))
}

func (c *Core) prioritize(in taskqueue.Prioritize) error {
	r, err := c.runs.get(in.Run)
	if err == nil {
		err = c.jobs.known(in.Jobs)
	}
	if err != nil {
		return err
	}
	if int(int32(in.Priority)) != in.Priority {
		return refuse("dispatch: priority %d is out of range", in.Priority)
	}
	for _, id := range in.Jobs {
		if id.Run() != in.Run {
			return refuse("dispatch: job %d is one of run %d, not of run %d", id.Number(), id.Run(), in.Run)
		}
	}
	c.jobs.unequal = true
	if len(in.Jobs) == 0 {
		r.raised = int32(in.Priority)
		c.journal.persistRun(r)
		c.reprioritize(r)
		return nil
	}
	lower := false
	w := new(raising)
	for _, id := range in.Jobs {
		j := c.jobs.find(id)
		if j.state == taskqueue.Done {
			continue
		}
		before, priority := j.ownPriority(), int32(in.Priority)
		j.itsFate().Priority = &priority
		c.journal.persistFate(j)
		lower = lower || priority < before
		if j.live() || j.state == taskqueue.Blocked {
			c.jobs.raise(j, priority, w)
		} else {
			j.effective = max(j.effective, priority)
		}
	}
	if lower { // it may have lent its priority to others
		c.reprioritize(r)
		return nil
	}
	c.placement.letGo(c.jobs.raiseAhead(w)...)
	for _, j := range w.raised {
		c.placement.takesAnotherTurn(j)
	}
	return nil
}

func (c *Core) reprioritize(r *run) {
	c.placement.letGo(c.jobs.reprioritize(r)...)
	for j := range c.jobs.of(r) {
		c.placement.takesAnotherTurn(j)
	}
}

// takesAnotherTurn takes back a job that waits at a pilot by another priority than it has now.
func (pl *placement) takesAnotherTurn(j *job) {
	if a := j.attempt; a != nil && a.gang == nil && a.priority != j.effective && a.ahead && !a.leaves() &&
		!a.started && a.waitsItsTurn() {
		pl.askBack(a)
	}
}

// reprioritize gives each job of a run the priority that follows from those that the jobs have themselves, and
// returns the ready jobs that moved.
func (js *jobs) reprioritize(r *run) (moved []*job) {
	for f := range js.files.raisedTo {
		if f.own.run == r.ID {
			delete(js.files.raisedTo, f)
		}
	}
	for j := range js.of(r) {
		j.effective = j.ownPriority()
	}
	for j := range js.of(r) {
		if j.live() || j.state == taskqueue.Blocked {
			js.walkAhead(&raising{todo: []*job{j}})
		}
	}
	for j := range js.of(r) {
		if js.regroup(j) {
			moved = append(moved, j)
		}
	}
	return moved
}
