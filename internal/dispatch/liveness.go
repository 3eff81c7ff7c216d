package dispatch

import (
	"errors"
	"fmt"
	"slices"

	"fairway/internal/taskqueue"
)

// CheckLiveness returns an error that names a job whose wait nothing will end. There
// is none, unless the Core has a fault; simulations ask after each step. It
// looks at all jobs.
//
// What ends a wait: a request stands behind those of live jobs; a version is made,
// or made again, by a live job, or that will be begun when the pilots of before a
// restart had time to tell what they hold; a pause has a timer; what was given to a
// pilot has an attempt.
func (c *Core) CheckLiveness() error {
	for j := range c.jobs.all {
		if err := c.checkJob(j); err != nil {
			return fmt.Errorf("job %s is %v, and nothing will end that: %w", j.name, j.state, err)
		}
	}
	return nil
}

func (c *Core) checkJob(j *job) error {
	for i := range j.requests {
		r := &j.requests[i]
		if r.Queued() && !j.live() {
			return fmt.Errorf("its request to %s %s keeps others waiting", r.Mode(), r.file().lfn)
		}
		if r.Queued() && !r.Granted() && r.Prev() == nil {
			return fmt.Errorf("its request to %s %s is the first, and not granted", r.Mode(), r.file().lfn)
		}
	}
	if j.original.gang() {
		if err := c.checkGang(j); err != nil {
			return err
		}
	}
	switch {
	case j.state == taskqueue.Waiting:
		return c.checkWaiting(j)
	case j.state == taskqueue.Ready && j.group == nil && !j.step.run.halted():
		return errors.New("no pilot is offered it")
	case (j.state == taskqueue.Assigned || j.state == taskqueue.Running) && j.attempt == nil &&
		(c.fleet.gangs[j] == nil || c.fleet.grace.over): // else its tasks are still told of
		return errors.New("it has no attempt")
	case j.state == taskqueue.Blocked && !j.readsMissing():
		return errors.New("nothing that it reads is missing")
	case j.state == taskqueue.Done:
		return c.checkOwed(j)
	}
	return nil
}

// checkOwed looks for results that were lost and that nobody makes again.
func (c *Core) checkOwed(j *job) error {
	if !j.publishes() {
		return nil
	}
	for _, v := range c.files.writtenBy(j) {
		if v.owed() && !v.wanted {
			return fmt.Errorf("nobody makes its result %s again", v.file.lfn)
		}
	}
	return nil
}

func (c *Core) checkWaiting(j *job) error {
	if j.ungranted == 0 && j.absent == 0 && (j.fate == nil || !j.fate.backingOff) {
		return c.checkFollows(j)
	}
	if j.absent == 0 {
		return nil
	}
	for i := range j.requests {
		v := j.requests[i].read
		if v != nil && slices.Contains(c.files.waiters[v], j) && !v.wanted && (v.writer == nil || !v.writer.live()) {
			return fmt.Errorf("nobody makes version %d of %s", v.number, v.file.lfn)
		}
	}
	return nil
}

// checkFollows looks for a twin of a job that is executed at present.
func (c *Core) checkFollows(j *job) error {
	if !c.jobs.twins.follows(j) {
		return errors.New("it waits for nothing")
	}
	for x := range c.jobs.twins.each(j.key) {
		if x.attempt != nil {
			return nil
		}
	}
	return errors.New("it waits for a twin that has no attempt")
}
