package dispatch

import "slices"

// retireRun forgets a run, with its jobs and files. What outlives it: its results, which
// are records of their own from now on; what is to be removed; and the copies in caches,
// which may go first unless a file of another run holds the same.
func (c *Core) retireRun(id RunID) error {
	r, err := c.runs.get(id)
	if err != nil {
		return err
	}
	if r.state != RunEnded {
		return refuse("dispatch: run %d %s, and can be retired when it has ended", id, r.state.standing())
	}
	for f := range r.files.All {
		if c.files.publishing[f] != nil {
			return refuse("dispatch: run %d still publishes %s", id, f.lfn)
		}
	}
	for j := range c.jobs.of(r) {
		for j.attempt != nil {
			c.fleet.dropAttempt(j.attempt)
		}
	}
	for j := range c.jobs.of(r) {
		c.retireJob(j)
	}
	c.files.deferred = slices.DeleteFunc(c.files.deferred, func(w wanting) bool { return w.version.run == id })
	for f := range r.files.All {
		c.retireFile(f)
	}
	for _, s := range r.stepOrder {
		delete(c.fleet.pace.runs, s)
	}
	c.fleet.sources.retire(id)
	c.jobs.drop(r)
	c.journal.forget(TableRun, id, runKey)
	c.runs.remove(r)
	return nil
}

// retireJob deletes the records of a job. Of one that is done the outputs stay that a
// later run can take.
func (c *Core) retireJob(j *job) {
	c.placement.unready(j)
	c.fleet.forgetGang(j)
	c.files.unawait(j)
	if c.files.outdated[j] != nil {
		c.files.persistOutputs(j)
	}
	c.files.keepResult(j)
	c.files.removeSaved(j.saved())
	delete(c.files.matched, j.id)
	c.journal.forget(TableJob, j.id.Run(), jobKey(j.id))
	if j.committed != 0 {
		c.journal.forget(TableCommit, j.id.Run(), jobKey(j.id))
	}
	if j.fate != nil {
		c.journal.forget(TableFate, j.id.Run(), jobKey(j.id))
	}
}

// keepResult makes a result of the outputs of a job, or removes them where there is one
// already, or no job could take it.
func (fs *files) keepResult(j *job) {
	if j.committed == 0 {
		return
	}
	_, ok := fs.journal.results[j.key]
	if j.key == (identity{}) || !j.reused && (ok || fs.journal.taken[j.key]) {
		for _, v := range fs.writtenBy(j) {
			if v.pfn != "" {
				fs.remove(v.pfn)
			}
		}
		return
	}
	fs.journal.kept++
	made := uint64(j.committed >> 32)
	r := storedResult{j.name, j.digest, j.inputMarks(), made, fs.journal.kept, fs.recorded(j)}
	for i := range r.outputs {
		r.outputs[i].Tag = r.outputs[i].tag(j.committed)
	}
	if j.reused {
		r.made = fs.journal.incarnation
		delete(fs.journal.taken, j.key)
	} else {
		fs.journal.persistResult(j.key, &r)
	}
	fs.journal.results[j.key] = r
}

// retireFile forgets a file. Copies of it that are the same as those of a file of
// another run count for that from now on.
func (c *Core) retireFile(f *file) {
	for _, v := range f.versions {
		c.files.notStored(v)
		c.files.setHash(v, "", "")
		for len(v.holders) > 0 {
			p := v.holders[len(v.holders)-1]
			copied, size := c.files.copyAt(p, v), v.size
			c.files.drop(p, v)
			p.other.set(copied, size)
			c.files.adoptCopy(p, copied, v.run)
		}
		if v.existing {
			c.journal.forget(TableFile, v.run, fileKey(v.ref()))
		}
	}
	delete(c.files.raisedTo, f)
	if f.publishFrom > 0 {
		c.journal.forget(TablePublished, f.own.run, f.lfn)
	}
}

// adoptCopy has a copy count for a file of a run other than one that is retired.
func (fs *files) adoptCopy(p *pilot, copied FileRef, retired RunID) {
	for _, r := range fs.runs.inOrder {
		v := r.files.version(copied.LFN, copied.Version)
		if r.ID == retired || v == nil || v.identity == (identity{}) || v.tag != copied.Tag {
			continue
		}
		size, _ := p.other.take(copied)
		fs.hold(p, v, size)
		return
	}
}

// drop takes the jobs of a run out of the table.
func (js *jobs) drop(r *run) {
	for j := range js.of(r) {
		js.totals.Jobs--
		js.totals.ByState[j.state]--
		if j.fromBefore() {
			js.totals.Reused--
		}
	}
	for i, s := range r.spans {
		end := r.jobs + 1
		if i+1 < len(r.spans) {
			end = r.spans[i+1].number
		}
		js.table.Drop(s.row, end-s.number)
	}
}
