package dispatch

// at returns the at of an ID that is known to be one.
func (q *queue) at(id JobID) *job { return q.jobs.At(uint32(id)) }

// find returns the job of an ID that somebody says, or nil.
func (q *queue) find(id JobID) *job {
	if id == 0 || uint64(id) >= uint64(q.jobs.Len()) {
		return nil
	}
	return q.at(id)
}

// all yields the jobs in the order of their IDs.
func (q *queue) all(yield func(*job) bool) {
	for id := uint32(1); id < q.jobs.Len(); id++ {
		if !yield(q.jobs.At(id)) {
			return
		}
	}
}

// JobNamed returns the job of that name.
func (c *Core) JobNamed(name string) (JobID, bool) {
	id, found := c.queue.names.Find(c.queue.names.Hash(name), func(id uint32) bool { return c.queue.jobs.At(id).name == name })
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
