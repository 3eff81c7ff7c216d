package dispatch

import (
	"slices"

	"fairway/internal/fifo"
)

func (fs *files) insert(r *request) {
	mode := fifo.Read
	if r.write != nil {
		mode = fifo.Write
	}
	if !r.file().queue.Insert(&r.Request, mode) {
		r.job.ungranted++
	}
}

// leave takes the job's requests out of the FIFOs and lets pass who stood
// behind them.
func (fs *files) leave(j *job) {
	for i := range j.requests {
		r := &j.requests[i]
		if !r.Queued() {
			continue
		}
		f := r.file()
		fs.lowerMark(f, r)
		for n := f.queue.Cancel(&r.Request); n != nil; n = n.NextGranted() {
			behind := n.Owner.job
			behind.ungranted--
			if behind.ungranted == 0 {
				fs.work.examine = append(fs.work.examine, behind)
			}
		}
	}
	j.ungranted = 0
}

// startOut lists a job to be looked at, if none of its requests waits.
func (fs *files) startOut(j *job) {
	if j.readsMissing() {
		fs.work.block = append(fs.work.block, j)
	} else if j.ungranted == 0 {
		fs.work.examine = append(fs.work.examine, j)
	}
}

// examineAll looks at the listed jobs in the order of their listing, so that
// jobs submitted together become ready in that order.
func (c *Core) examineAll() {
	list := c.work.examine
	c.work.examine = nil
	for _, j := range list {
		c.examine(j)
	}
	if c.work.examine == nil {
		c.work.examine = list[:0]
	}
}

// examine makes a waiting job ready if it can be, or lists it with the
// versions that it still needs.
func (c *Core) examine(j *job) {
	if j.state != Waiting || j.ungranted > 0 || j.absent > 0 {
		return
	}
	if j.fate != nil && j.fate.backingOff {
		return
	}
	if j.readsMissing() {
		c.work.block = append(c.work.block, j)
		return
	}
	if c.files.await(j, func(v *version) bool { return v.state == pending }) {
		return
	}
	if !j.again && c.reuse(j) {
		return
	}
	if c.files.await(j, func(v *version) bool { return v.state != present }) {
		c.want(j)
		return
	}
	if c.placement.gather(j) {
		return
	}
	c.queue.setState(j, Ready)
	j.readySince = c.now
	c.placement.setClass(j)
	c.queue.index(j)
	c.jobEvent(JobReady, j, "")
}

// await lists the job with the versions it reads for which absent holds, and
// reports whether there are any.
func (fs *files) await(j *job, absent func(*version) bool) bool {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && absent(v) {
			fs.waiters[v] = append(fs.waiters[v], j)
			j.absent++
		}
	}
	return j.absent > 0
}

// unawait forgets what await listed.
func (fs *files) unawait(j *job) {
	if j.absent == 0 {
		return
	}
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			fs.stopWaiting(v, j)
		}
	}
	j.absent = 0
}

func (fs *files) stopWaiting(v *version, j *job) {
	fs.waiters[v] = slices.DeleteFunc(fs.waiters[v], func(w *job) bool { return w == j })
	if len(fs.waiters[v]) == 0 {
		delete(fs.waiters, v)
	}
}

// arrived tells those who wait for the version that it can be had.
func (fs *files) arrived(v *version) {
	for _, j := range fs.waiters[v] {
		j.absent--
		if j.absent == 0 {
			fs.work.examine = append(fs.work.examine, j)
		}
	}
	delete(fs.waiters, v)
}

func (q *queue) setState(j *job, s State) {
	j.step.add(j.state, -1)
	q.totals.add(j.state, -1)
	j.state = s
	j.step.add(s, 1)
	q.totals.add(s, 1)
}
