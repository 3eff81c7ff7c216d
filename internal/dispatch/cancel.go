package dispatch

func (c *Core) cancel(ids []JobID) error {
	if err := c.jobs.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		c.cancelJob(c.jobs.find(id))
	}
	return nil
}

func (c *Core) cancelJob(j *job) {
	if j.state == Done || j.state == Cancelled {
		return
	}
	c.placement.unready(j)
	c.fleet.endAttempts(j)
	c.finish(j, Cancelled, "by a person")
	c.files.unpinAll(j)
}

// finish ends a job without outputs.
func (c *Core) finish(j *job, s State, reason string) {
	c.jobs.setState(j, s)
	c.files.withdraw(j)
	j.regenerating = false
	f := j.itsFate()
	f.End, f.Reason, f.backingOff = s, reason, false
	c.journal.persistFate(j)
	kind := JobFailed
	if s == Cancelled {
		kind = JobCancelled
	}
	c.jobEvent(kind, j, reason)
	if s == Failed {
		c.work.failed = append(c.work.failed, j)
	}
}

func (c *Core) retryJobs(ids []JobID) error {
	if err := c.jobs.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		j := c.jobs.find(id)
		if j.state != Failed && j.state != Cancelled && len(c.files.lostOutputs(j)) == 0 {
			return refuse("dispatch: job %s has neither failed nor been cancelled, and its outputs are there", j.name)
		}
	}
	for _, id := range ids {
		c.retryJob(c.jobs.find(id))
	}
	return nil
}

func (c *Core) retryJob(j *job) {
	for _, v := range c.files.lostOutputs(j) {
		j.itsFate().regenerations = 0
		v.wanted = true
		c.work.wanted = append(c.work.wanted, wanting{version: v, byPerson: true})
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
		j.regenerating = true
	}
	c.jobs.setState(j, Waiting)
	c.files.revive(j)
	c.journal.persistFate(j)
	c.placement.letGoAll(c.jobs.inheritFromReaders(j))
	c.files.startOut(j)
}
