package dispatch

// job returns the job of an ID that is known to be one.
func (c *Core) job(id JobID) *job { return c.jobs.At(uint32(id)) }

// jobOf returns the job of an ID that somebody says, or nil.
func (c *Core) jobOf(id JobID) *job {
	if id == 0 || uint64(id) >= uint64(c.jobs.Len()) {
		return nil
	}
	return c.job(id)
}

// allJobs yields the jobs in the order of their IDs.
func (c *Core) allJobs(yield func(*job) bool) {
	for id := uint32(1); id < c.jobs.Len(); id++ {
		if !yield(c.jobs.At(id)) {
			return
		}
	}
}

// JobNamed returns the job of that name.
func (c *Core) JobNamed(name string) (JobID, bool) {
	id, found := c.names.Find(c.names.Hash(name), func(id uint32) bool { return c.jobs.At(id).name == name })
	return JobID(id), found
}

// fileCalled returns the file of that name, or nil.
func (c *Core) fileCalled(lfn string) *file { return c.findFile(c.lfns.Hash(lfn), lfn) }

func (c *Core) findFile(hash uint64, lfn string) *file {
	if row, found := c.lfns.Find(hash, func(row uint32) bool { return c.files.At(row).lfn == lfn }); found {
		return c.files.At(row)
	}
	return nil
}

// fileNamed returns the file of that name, made if need be.
func (c *Core) fileNamed(lfn string) *file {
	hash := c.lfns.Hash(lfn)
	f := c.findFile(hash, lfn)
	if f == nil {
		c.lfns.Add(hash, c.files.Len())
		f = c.files.Add()
		f.lfn = lfn
	}
	return f
}

// patternNamed returns the location of a pattern, made if need be.
func (c *Core) patternNamed(p string) *file {
	f := c.patterns[p]
	if f == nil {
		f = &file{lfn: p, pattern: true}
		c.patterns[p] = f
	}
	return f
}
