package dispatch

import (
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// retireRun forgets a run, with its jobs and files. What outlives it: its results, which
// are records of their own from now on; what is to be removed; and the copies in caches,
// which may go first unless a file of another run holds the same.
func (c *Core) retireRun(in taskqueue.RetireRun) error {
	id := in.Run
	r, err := c.ended(id)
	if err != nil {
		return err
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
		c.retireJob(j, in.Keep)
	}
	c.files.deferred = slices.DeleteFunc(c.files.deferred, func(w wanting) bool { return w.version.run == id })
	for f := range r.files.All {
		c.retireFile(f)
	}
	for _, s := range r.stepOrder {
		c.fleet.pace.Forget(s)
	}
	c.fleet.sources.retire(id)
	c.fleet.nodes.Forget(func(j *job) bool { return j.id.Run() == id })
	c.jobs.drop(r)
	c.dropClasses(spareClasses)
	c.journal.forget(records.TableRun, id, records.RunKey)
	c.runs.remove(r)
	if in.Swept {
		c.effects.Persist = slices.DeleteFunc(c.effects.Persist, func(k taskqueue.Record) bool { return k.Run == id })
	}
	return nil
}

// ended is a run that has come to its end.
func (c *Core) ended(id taskqueue.RunID) (*run, error) {
	r, err := c.runs.get(id)
	if err == nil && r.state != taskqueue.RunEnded {
		err = refuse("dispatch: run %d %s, and can be retired when it has ended", id, r.state.Standing())
	}
	return r, err
}

// keepResults lends what jobs have made to the results that stay when their run is retired.
func (c *Core) keepResults(in taskqueue.KeepResults) error {
	r, err := c.ended(in.Run)
	if err != nil {
		return err
	}
	end := min(uint64(in.From)+uint64(max(in.Jobs, 0)), uint64(r.jobs)+1)
	for n := uint64(max(in.From, 1)); n < end; n++ {
		j := c.jobs.table.At(r.row(uint32(n)))
		if j.committed == 0 || j.key == (identity{}) || j.inJournal() || c.journal.results.Of(j.key) != nil {
			continue
		}
		c.lend(j, append([]*job{j}, c.jobs.committed(j)...), in.Run)
	}
	return nil
}

// dropClasses forgets what no job needs any more, if there are more classes than kept.
func (c *Core) dropClasses(kept int) {
	for _, index := range c.jobs.dropUnused(kept) {
		for _, s := range c.fleet.shapes {
			s.forget(index)
		}
	}
}

// retireJob deletes the records of a job. Of one that is done the outputs stay that a
// later run can take.
func (c *Core) retireJob(j *job, keep bool) {
	c.placement.unready(j)
	c.fleet.forgetGang(j)
	c.files.unawait(j)
	if c.files.outdated[j] != nil {
		c.files.persistOutputs(j)
	}
	c.keepResult(j, keep)
	c.jobs.twins.leave(j, &c.work)
	c.files.removeSaved(j.saved())
	delete(c.files.matched, j.id)
	c.journal.forget(records.TableJob, j.id.Run(), records.JobKey(j.id))
	if j.committed != 0 {
		c.journal.forget(records.TableCommit, j.id.Run(), records.JobKey(j.id))
	}
	if j.fate != nil {
		c.journal.forget(records.TableFate, j.id.Run(), records.JobKey(j.id))
	}
}

// keepResult makes a result of the outputs of a job, or has the one stay that there is under its key;
// then what the job has made besides is removed. So is all that no job could take.
func (c *Core) keepResult(j *job, keep bool) {
	if j.committed == 0 {
		return
	}
	fs := &c.files
	r := fs.journal.results.Of(j.key)
	switch {
	case j.key == (identity{}):
		fs.removeOutputs(j, nil)
		return
	case r == nil:
		r = fs.resultOf(j)
		r.Takers = c.jobs.committed(j)
		fs.journal.results.Add(j.key, r)
	default:
		r.Leave(j)
		fs.complete(r, j)
		fs.removeOutputs(j, r)
	}
	before := len(r.Runs)
	fs.journal.results.HasLeft(r)
	if j.result == takenResult {
		r.Made = fs.journal.incarnation
	}
	switch id := j.id.Run(); {
	case keep && !slices.Contains(r.Runs, id):
		r.Runs, r.Left = append(r.Runs, id), 0
	case r.IsUnused() && j.step.run.Scope != "":
		r.Left = fs.now
	}
	if j.result == ownResult || len(r.Runs) != before || r.Left != 0 {
		fs.journal.persistResult(j.key, r)
	}
}

// removeOutputs removes what a job has stored and no result names that it leaves.
func (fs *files) removeOutputs(j *job, left *storedResult) {
	for _, v := range fs.writtenBy(j) {
		if v.pfn != "" && (left == nil || !left.Names(v.pfn)) {
			fs.remove(v.pfn)
		}
	}
}

// releaseRun has results named no more by a run that was retired.
func (c *Core) releaseRun(in taskqueue.ReleaseRun) error {
	keys := make([]identity, len(in.Results))
	for i, text := range in.Results {
		key, err := records.ParseIdentity(text)
		if err != nil {
			return refuse("dispatch: %q is no key of a result", text)
		}
		keys[i] = key
	}
	if in.Results == nil {
		keys = c.journal.results.NamedByRetired(in.Run)
	}
	for _, key := range keys {
		r := c.journal.results.Of(key)
		if r == nil || !slices.Contains(r.Runs, in.Run) {
			continue // it went meanwhile
		}
		if r.Release(in.Run); r.IsUnused() {
			r.Left = c.now
		}
		c.journal.persistResult(key, r)
	}
	return nil
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
			p.copies.other.Set(copied, size)
			c.files.adoptCopy(p, copied, v.run)
		}
		if v.existing {
			c.journal.forget(records.TableFile, v.run, records.FileKey(v.ref()))
		}
	}
	delete(c.files.raisedTo, f)
	if f.publishFrom > 0 {
		c.journal.forget(records.TablePublished, f.own.run, f.lfn)
	}
}

// adoptCopy has a copy count for a file of a run other than one that is retired.
func (fs *files) adoptCopy(p *pilot, copied taskqueue.FileRef, retired taskqueue.RunID) {
	for _, r := range fs.runs.inOrder {
		v := r.files.version(copied.LFN, copied.Version)
		if r.ID == retired || v == nil || v.identity == (identity{}) || v.tag != copied.Tag {
			continue
		}
		size, _ := p.copies.other.Take(copied)
		fs.hold(p, v, size)
		return
	}
}

// drop takes the jobs of a run out of the table.
func (js *jobs) drop(r *run) {
	for j := range js.of(r) {
		j.class.users--
		j.original.users--
		clear(j.requests) // or they would keep all of the run alive, beside those of another run
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
