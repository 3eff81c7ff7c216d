package dispatch

import "slices"

// How a job ends: with outputs, which become visible all at once, or without. Either way
// its requests leave the FIFOs, and those that it kept waiting are listed in worklists.

// commit makes the job Done with these outputs, which are in the order of Writes. p is the
// pilot that has them, or nil. It is the only place where versions become visible for the
// first time.
func (c *Core) commit(j *job, outputs []output, p *pilot) []CommittedFile {
	fs := &c.files
	c.jobs.setState(j, Done)
	holders := c.holders(p, outputs)
	versions := make([]*version, 0, 8) // on the stack for most jobs
	visible := fs.fileSlab.Take(len(outputs))
	for i := range outputs {
		o := &outputs[i]
		v := fs.outputVersion(j, o)
		versions = append(versions, v)
		visible[i] = CommittedFile{File: v.ref(), Pattern: o.Pattern, PFN: o.PFN, Size: o.Size, Records: o.Records}
		v.size, v.records, v.adler, v.pfn, v.tag = o.Size, o.Records, o.Adler32, o.PFN, o.tag(j.committed)
		v.identity = j.identityOf(o.LFN)
		if !fs.makeVisible(v, p, holders) {
			c.wantForWaiters(v) // the only pilot that had it is gone
		}
	}
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.file.pattern {
			v.state = present
		}
	}
	fs.leave(j)
	c.journal.persistCommit(j, outputs)
	for _, v := range versions {
		fs.publish(j, v)
		fs.superseded(v)
	}
	fs.unpinAll(j)
	return visible
}

// holders are the pilots that may have told of copies of these outputs: those of
// the host of the pilot that made them, or for a result of an earlier run that is
// in caches only, all.
func (c *Core) holders(p *pilot, outputs []output) []*pilot {
	switch {
	case p != nil && !p.left:
		return p.host.pilots
	case slices.ContainsFunc(outputs, func(o output) bool { return o.PFN == "" }):
		return c.fleet.inOrder()
	}
	return nil
}

func (fs *files) outputVersion(j *job, o *output) *version {
	if o.Pattern == "" {
		for i := range j.requests {
			if v := j.requests[i].write; v != nil && !v.file.pattern && v.file.lfn == o.LFN {
				return v
			}
		}
	}
	f := j.files().named(o.LFN)
	f.matched = true
	v := f.versionFor(Version(j.id.Number()))
	v.writer = j
	fs.matched[j.id] = append(fs.matched[j.id], v)
	return v
}

func (j *job) identityOf(lfn string) identity {
	if j.key != (identity{}) {
		return identityOf("output", string(j.key[:]), lfn)
	}
	return identityOf("attempt", attemptKey(j.committed), lfn)
}

// makeVisible is for a version whose record is set: it counts the copies that
// pilots have told of before, and lists who waits for it. It reports whether
// there is a copy.
func (fs *files) makeVisible(v *version, by *pilot, holders []*pilot) bool {
	v.state = present
	live := by != nil && !by.left
	if live || v.pfn == "" {
		r := v.copyNamed(v.tag)
		for _, p := range holders {
			if size, ok := p.other[r]; ok {
				delete(p.other, r)
				fs.hold(p, v, size)
			}
		}
	}
	if v.pfn == "" {
		if live {
			fs.hold(by, v, v.size)
		}
		if !v.hasCopy() {
			v.state = gone
			return false
		}
	}
	fs.arrived(v)
	return true
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

// leave takes the job's requests out of the FIFOs and lets pass who stood
// behind them.
func (fs *files) leave(j *job) {
	for i := range j.requests {
		r := &j.requests[i]
		if !r.Queued() {
			continue
		}
		f := r.file()
		if mark, ok := fs.raisedTo[f]; ok && mark.request == r {
			if before := r.Prev(); before != nil {
				fs.raisedTo[f] = raised{before.Owner, mark.priority}
			} else {
				delete(fs.raisedTo, f)
			}
		}
		for n := f.fifo.Cancel(&r.Request); n != nil; n = n.NextGranted() {
			behind := n.Owner.job
			behind.ungranted--
			if behind.ungranted == 0 {
				fs.work.examine = append(fs.work.examine, behind)
			}
		}
	}
	j.ungranted = 0
}

// unpinAll is for a job that will not read its inputs any more.
func (fs *files) unpinAll(j *job) {
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil {
			continue
		}
		if v.pins--; v.pins == 0 {
			v.ready, v.mostly = nil, [1]readyReader{}
			fs.tryRemove(v)
		}
	}
}

func (j *job) pinInputs() {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			v.pins++
		}
	}
}

func (c *Core) cancel(ids []JobID) error {
	if err := c.jobs.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		j := c.jobs.find(id)
		if j.state == Done || j.state == Cancelled {
			continue
		}
		c.placement.unready(j)
		c.fleet.endAttempts(j)
		c.finish(j, Cancelled, "by a person")
		c.files.unpinAll(j)
	}
	return nil
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

// withdraw ends the job's claims without outputs: its requests let pass, and
// the versions that it was to write become missing. What it reads stays
// pinned.
func (fs *files) withdraw(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		r := &j.requests[i]
		if r.write == nil || !r.write.lose() {
			continue
		}
		// Its readers stand together in the FIFO: right behind r, or anywhere if r was
		// withdrawn before. Those that were withdrawn are listed with the version.
		n := r.Next()
		if !r.Queued() {
			n = r.file().fifo.Head()
			for n != nil && n.Owner.read != r.write {
				n = n.Next()
			}
		}
		for ; n != nil && n.Owner.read == r.write; n = n.Next() {
			fs.work.block = append(fs.work.block, n.Owner.job)
		}
		fs.work.block = append(fs.work.block, fs.waiters[r.write]...)
	}
	for _, v := range fs.matched[j.id] {
		if v.lose() {
			fs.work.block = append(fs.work.block, fs.waiters[v]...)
		}
	}
	if j.regenerating {
		for _, v := range fs.writtenBy(j) {
			if v.state == present && len(fs.waiters[v]) > 0 { // it is in caches elsewhere
				fs.cannotRegenerate(v)
			}
		}
	}
	fs.leave(j)
	j.itsFate().Withdrawn = true
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

// cannotRegenerate blocks those who wait for the version.
func (fs *files) cannotRegenerate(v *version) {
	v.state = missing
	fs.work.block = append(fs.work.block, fs.waiters[v]...)
}
