package dispatch

import (
	"fmt"

	"fairway/internal/fifo"
)

// withdraw ends the job's claims without outputs: its requests let pass, and
// the versions that it was to write become missing. What it reads stays
// pinned.
func (fs *files) withdraw(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		r := &j.requests[i]
		if v := r.write; v != nil && v.lose() {
			fs.blockReaders(r)
		}
	}
	for _, v := range fs.matched[j.id] {
		if v.lose() {
			fs.work.block = append(fs.work.block, fs.waiters[v]...)
		}
	}
	fs.loseScattered(j)
	fs.leave(j)
	j.itsFate().Withdrawn = true
}

// loseScattered is for a job that was to make again, at a place where they
// are needed, versions that are in caches elsewhere.
func (fs *files) loseScattered(j *job) {
	if !j.again {
		return
	}
	for _, v := range fs.writtenBy(j) {
		if v.state == present && len(fs.waiters[v]) > 0 {
			fs.cannotRegenerate(v)
		}
	}
}

// lose makes a version missing unless it can be had, and reports whether it
// did.
func (v *version) lose() bool {
	if v.state == present || v.state == missing {
		return false
	}
	v.state = missing
	return true
}

// regain undoes lose.
func (v *version) regain() bool {
	if v.state != missing {
		return false
	}
	v.state = pending
	if v.identity != (identity{}) {
		v.state = gone
		if v.hasCopy() {
			v.state = present
		}
	}
	return true
}

// blockReaders lists the readers of a version that will not come. Those in the
// FIFO stand together. Those that were withdrawn are listed with the version.
func (fs *files) blockReaders(r *request) {
	v := r.write
	for n := r.firstReader(); n != nil && n.Owner.read == v; n = n.Next() {
		fs.work.block = append(fs.work.block, n.Owner.job)
	}
	fs.work.block = append(fs.work.block, fs.waiters[v]...)
}

// firstReader is the first request that reads what r writes: it stands right
// behind r, or anywhere if r was withdrawn before.
func (r *request) firstReader() *fifo.Request[*request] {
	if r.Queued() {
		return r.Next()
	}
	n := r.file().queue.Head()
	for n != nil && n.Owner.read != r.write {
		n = n.Next()
	}
	return n
}

func (j *job) readsMissing() bool { return j.missingInput() != nil }

func (j *job) missingInput() *version {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && v.state == missing {
			return v
		}
	}
	return nil
}

// blockJob blocks a job that reads a missing version, and so its readers.
func (c *Core) blockJob(j *job) {
	if j.state != Waiting || !j.readsMissing() {
		return
	}
	c.queue.setState(j, Blocked)
	c.jobEvent(JobBlocked, j, c.queue.blockedBy(j))
	c.files.withdraw(j)
	c.files.await(j, func(v *version) bool { return v.state == missing })
	c.journal.persistFate(j)
}

func (q *queue) blockedBy(j *job) string {
	v := j.missingInput()
	if v == nil || v.writer == nil {
		return ""
	}
	root := q.culprit(v.writer)
	return fmt.Sprintf("%s will not come: job %s %s", v.file.lfn, root.name, root.ending())
}

// culprit follows blocked jobs to the one that failed or was cancelled.
func (q *queue) culprit(j *job) *job {
	for range q.jobs.Len() {
		v := j.missingInput()
		if j.state != Blocked || v == nil || v.writer == nil {
			return j
		}
		j = v.writer
	}
	return j
}

func (j *job) ending() string {
	switch j.state {
	case Failed:
		return "failed"
	case Cancelled:
		return "was cancelled"
	}
	return "could not make it again"
}

// revive makes a job that had ended without outputs live again. Its requests
// do not return to the FIFOs: what it reads is pinned and what it writes has
// its number, so the order is kept by the versions.
func (fs *files) revive(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
	for _, v := range fs.matched[j.id] {
		if v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
}

// unblockJob is for a blocked job that no longer reads a missing version.
func (c *Core) unblockJob(j *job) {
	if j.state != Blocked {
		return
	}
	if j.readsMissing() {
		c.files.unawait(j)
		c.files.await(j, func(v *version) bool { return v.state == missing })
		return
	}
	c.files.revive(j)
	c.queue.setState(j, Waiting)
	c.jobEvent(JobUnblocked, j, "")
	c.work.examine = append(c.work.examine, j)
}

func (q *queue) known(ids []JobID) error {
	for _, id := range ids {
		if q.find(id) == nil {
			return refuse("dispatch: there is no job %d", id)
		}
	}
	return nil
}

func (c *Core) cancel(ids []JobID) error {
	if err := c.queue.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		c.cancelJob(c.queue.at(id))
	}
	return nil
}

func (c *Core) cancelJob(j *job) {
	if j.state == Done || j.state == Cancelled {
		return
	}
	c.placement.unready(j)
	c.fleet.endAttempts(j, nil)
	c.finish(j, Cancelled, "by a person")
	c.files.unpinAll(j)
}

// finish ends a job without outputs.
func (c *Core) finish(j *job, s State, reason string) {
	c.queue.setState(j, s)
	c.files.withdraw(j)
	j.again = false
	f := j.itsFate()
	f.End, f.Reason, f.backingOff = s, reason, false
	c.journal.persistFate(j)
	kind := JobFailed
	if s == Cancelled {
		kind = JobCancelled
	}
	c.jobEvent(kind, j, reason)
}

func (c *Core) retryJobs(ids []JobID) error {
	if err := c.queue.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		j := c.queue.at(id)
		if j.state != Failed && j.state != Cancelled && len(c.files.lostOutputs(j)) == 0 {
			return refuse("dispatch: job %s has neither failed nor been cancelled, and its outputs are there", j.name)
		}
	}
	for _, id := range ids {
		c.retryJob(c.queue.at(id))
	}
	return nil
}

func (c *Core) retryJob(j *job) {
	for _, v := range c.files.lostOutputs(j) {
		j.itsFate().regenerations = 0
		v.wanted = true
		c.work.wanted = append(c.work.wanted, wanting{version: v, asked: true})
	}
	if j.state != Failed && j.state != Cancelled {
		return // named twice
	}
	if j.state == Cancelled {
		j.pinInputs()
	}
	f := j.itsFate()
	*f = fate{Attempts: f.Attempts, Memory: f.Memory, Withdrawn: true}
	c.placement.setClass(j)
	if j.committed != 0 {
		j.again = true
	}
	c.queue.setState(j, Waiting)
	c.files.revive(j)
	c.journal.persistFate(j)
	c.placement.letGoAll(c.queue.inheritFromReaders(j))
	c.files.startOut(j)
}
