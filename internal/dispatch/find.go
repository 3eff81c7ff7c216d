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

// find returns the file of that name, or nil.
func (fs *files) find(lfn string) *file { return fs.lookup(fs.names.Hash(lfn), lfn) }

func (fs *files) lookup(hash uint64, lfn string) *file {
	if row, found := fs.names.Find(hash, func(row uint32) bool { return fs.table.At(row).lfn == lfn }); found {
		return fs.table.At(row)
	}
	return nil
}

// named returns the file of that name, made if need be.
func (fs *files) named(lfn string) *file {
	hash := fs.names.Hash(lfn)
	f := fs.lookup(hash, lfn)
	if f == nil {
		fs.names.Add(hash, fs.table.Len())
		f = fs.table.Add()
		f.lfn = lfn
	}
	return f
}

// pattern returns the location of a pattern, made if need be.
func (fs *files) pattern(p string) *file {
	f := fs.patterns[p]
	if f == nil {
		f = &file{lfn: p, pattern: true}
		fs.patterns[p] = f
	}
	return f
}
