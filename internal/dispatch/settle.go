package dispatch

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
	if !j.regenerating && c.reuse(j) {
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
