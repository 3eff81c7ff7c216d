package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// A version whose every copy is gone stays known. When a job needs it that
// cannot be reused, the job that made it runs again, and before it, if need
// be, those that made its inputs. The version stays the same.

// wantInputs lists the versions that a job lacks, so that they are made again.
func (c *Core) wantInputs(j *job) {
	for v := range j.inputs {
		if v.state == gone {
			c.files.wantVersion(v, c.fleet.itsCache(j))
		}
	}
}

// regenerateAll has the wanted versions made again, but not before the pilots
// had time to say what they hold.
func (c *Core) regenerateAll() {
	if !c.fleet.grace.over {
		c.files.deferred = append(c.files.deferred, c.work.wanted...)
		c.work.wanted = c.work.wanted[:0]
		return
	}
	list := append(c.files.deferred, c.work.wanted...)
	c.files.deferred, c.work.wanted = nil, nil
	for _, w := range list {
		w.version.wanted = false
		if w.byPerson || len(c.files.waiters[w.version]) > 0 || w.version.owed() {
			c.regenerate(w.version, w.at)
		}
	}
}

func (c *Core) regenerate(v *version, at cacheID) {
	j := v.writer
	if j == nil || j.state == taskqueue.Failed || j.state == taskqueue.Cancelled || j.state == taskqueue.Blocked {
		c.files.cannotRegenerate(v)
		return
	}
	if j.state != taskqueue.Done {
		return // on its way
	}
	// What was removed on purpose is no loss: it is made again for a job that is bounded itself.
	f, wasLost := j.itsFate(), v.tag == lostTag || !j.outputFor(v.file.lfn).Temporary
	if wasLost && f.regenerations >= c.config.MaxRegenerations {
		f.Reason = fmt.Sprintf("its outputs were lost more than %d times", c.config.MaxRegenerations)
		if v.owed() {
			c.failRegeneration(j)
		}
		c.files.cannotRegenerate(v)
		return
	}
	why := " was removed as temporary, and is needed again"
	if wasLost {
		f.regenerations++
		why = " is in no cache where it is needed"
	}
	if v.tag == lostTag {
		why = " was lost from where it was stored"
	}
	f.cache = at
	f.Tries, f.Losses, f.End = 0, 0, taskqueue.Waiting
	j.regenerating = true
	c.jobs.setState(j, taskqueue.Waiting)
	j.pinInputs()
	c.event(taskqueue.Event{Kind: taskqueue.JobRegenerating, Job: j.id, Name: j.name, Step: j.step.Step,
		Reason: v.file.lfn + why})
	c.placement.letGo(c.jobs.inheritFromReaders(j)...)
	c.files.enlist(j)
}

// lossesBeforeStored is how often outputs that are for caches only are made again before they are stored.
const lossesBeforeStored = 2

// losesCopies reports whether the outputs of a job went out of caches, again and again, before a job had read them:
// the caches are too small for what they are for, or pilots do not live long enough.
func (j *job) losesCopies() bool { return j.fate != nil && j.fate.regenerations > lossesBeforeStored }

// failRegeneration is for a job that owes a result and may not run again for it.
func (c *Core) failRegeneration(j *job) {
	j.regenerating = true
	c.jobs.setState(j, taskqueue.Waiting)
	j.pinInputs()
	c.finish(j, taskqueue.Failed, j.fate.Reason)
}

// cancelRegeneration leaves a job that was to run again at its end, if nobody has begun that
// and nobody waits for its outputs any more: copies of them have turned up. So
// does, for the same reason, what it would have read.
func (c *Core) cancelRegeneration(j *job) {
	if !j.regenerating || j.state != taskqueue.Waiting && j.state != taskqueue.Ready || j.attempt != nil ||
		c.files.awaited(j) {
		return
	}
	c.placement.unready(j)
	c.files.unawait(j)
	j.regenerating, j.fate.cache, j.fate.backingOff = false, cacheID{}, false
	c.jobs.setState(j, taskqueue.Done)
	c.jobEvent(taskqueue.JobRegenerated, j, "not needed any more, because copies have turned up")
	for v := range j.inputs {
		if v.writer != nil {
			c.work.cancel = append(c.work.cancel, v.writer)
		}
	}
	c.files.unpinAll(j)
}

// lostLastCopy is for a version that was in caches only and has left the last
// one.
func (c *Core) lostLastCopy(v *version) {
	v.state = gone
	c.examineReaders(v)
}

// dropCopy is for a version that left a pilot's cache.
func (c *Core) dropCopy(p *pilot, v *version) {
	if c.files.drop(p, v) {
		c.lostLastCopy(v)
	}
}

// examineReaders has the jobs that are ready and read v looked at anew, as v is elsewhere now.
func (c *Core) examineReaders(v *version) {
	for _, r := range slices.Clone(v.ready) {
		for _, id := range r.jobs {
			if j := c.jobs.table.At(id); j.state == taskqueue.Ready {
				c.placement.unready(j)
				c.jobs.setState(j, taskqueue.Waiting)
				c.work.examine = append(c.work.examine, j)
			}
		}
	}
}

// loseFiles takes note of stored files that are lost. What is not stored any more
// under the name that is told is known already.
func (c *Core) loseFiles(files []taskqueue.LostFile) {
	lost := make(map[string]string, len(files)) // why, by PFN
	for i := range files {
		lost[files[i].PFN] = files[i].Why
	}
	delete(lost, "")
	c.files.loseResults(lost)
	for i := range files {
		c.loseFile(&files[i])
	}
	// The caller has looked, so they are lost for all jobs that name them. The word of a pilot
	// counts for the run of its job alone.
	shared := func(r *storedResult) bool { return len(r.Takers) > 0 }
	for _, key := range c.journal.results.Keys(shared) {
		for _, j := range c.journal.results.Of(key).Takers {
			for _, v := range c.files.writtenBy(j) {
				if why, ok := lost[v.pfn]; ok {
					c.loseFile(&taskqueue.LostFile{File: v.ref(), PFN: v.pfn, Why: why})
				}
			}
		}
	}
}

// loseCopies is for a file in caches only that a pilot has looked for in vain where it could
// reach copies. Whoever is said to hold one there has not noticed that somebody removed it, or
// the pilot cannot take it; either way its job would come back for ever.
func (c *Core) loseCopies(by *pilot, copied taskqueue.FileRef) {
	v := c.files.version(copied)
	if by == nil || v == nil || v.writer == nil || v.pfn != "" {
		return
	}
	for _, p := range slices.Clone(v.holders) {
		if p.cache() == by.cache() && c.files.copyAt(p, v).Tag == copied.Tag {
			c.setCopyAside(p, v)
		}
	}
}

// setCopyAside has a copy count no more, although it is in the pilot's cache as far as that has
// told.
func (c *Core) setCopyAside(p *pilot, v *version) {
	copied, size := c.files.copyAt(p, v), v.size
	c.dropCopy(p, v)
	p.copies.other.Set(copied, size)
}

func (c *Core) loseFile(l *taskqueue.LostFile) {
	v := c.files.version(l.File)
	if v == nil || v.writer == nil || v.pfn == "" || v.pfn != l.PFN || v.state != present {
		return
	}
	if !c.files.isShared(v) {
		c.files.remove(v.pfn)
		c.journal.results.Of(v.writer.key).Drop(v.pfn)
	}
	c.files.notStored(v)
	for _, p := range slices.Clone(v.holders) {
		c.setCopyAside(p, v)
	}
	v.tag = lostTag
	if v.state == present {
		c.lostLastCopy(v)
	}
	j := v.writer
	c.files.changeOutputs(j)
	c.event(taskqueue.Event{Kind: taskqueue.FileLost, Job: j.id, Name: j.name, Step: j.step.Step,
		Reason: v.file.lfn + ": " + l.Why})
	c.files.publishAgain(v)
	if v.owed() {
		c.files.wantVersion(v, cacheID{})
	}
}

func (c *Core) retryJobs(ids []taskqueue.JobID) error {
	if err := c.jobs.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		j := c.jobs.find(id)
		if j.state != taskqueue.Failed && j.state != taskqueue.Cancelled && len(c.files.lostOutputs(j)) == 0 {
			return refuse("dispatch: job %s has neither failed nor been cancelled, and its outputs are there", j.name)
		}
	}
	for _, id := range ids {
		j := c.jobs.find(id)
		for _, v := range c.files.lostOutputs(j) {
			j.itsFate().regenerations = 0
			v.wanted = true
			c.work.wanted = append(c.work.wanted, wanting{version: v, byPerson: true})
		}
		if j.state != taskqueue.Failed && j.state != taskqueue.Cancelled {
			continue // named twice
		}
		f := j.itsFate()
		*f = fate{Fate: records.Fate{Attempts: f.Attempts, Memory: f.Memory, Withdrawn: true, Saved: f.Saved,
			Priority: f.Priority}}
		c.placement.setClass(j)
		if j.committed != 0 {
			j.regenerating = true
		}
		c.jobs.setState(j, taskqueue.Waiting)
		c.files.revive(j)
		c.journal.persistFate(j)
		c.placement.letGo(c.jobs.inheritFromReaders(j)...)
		c.files.enlist(j)
	}
	return nil
}

// revive makes a job that had ended without outputs live again. Its requests
// do not return to the FIFOs: what it reads is pinned and what it writes has
// its number, so the order is kept by the versions.
func (fs *files) revive(j *job) {
	fs.unawait(j)
	for v := range j.writes {
		if v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
	for _, v := range fs.matched[j.id] {
		if v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
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

// wanting is a version that is to be made again, for a cache if that is given.
type wanting struct {
	version  *version
	at       cacheID
	byPerson bool // a person asked for it
}

func (fs *files) wantVersion(v *version, at cacheID) {
	if !v.wanted {
		v.wanted = true
		fs.work.wanted = append(fs.work.wanted, wanting{version: v, at: at})
	}
}

// wantOwed has the lost results of a job made again.
func (fs *files) wantOwed(j *job) {
	if !j.publishes() {
		return
	}
	for _, v := range fs.writtenBy(j) {
		if v.owed() {
			fs.wantVersion(v, cacheID{})
		}
	}
}

// awaited reports whether some job waits for an output of this one, or it owes a result.
func (fs *files) awaited(j *job) bool {
	return slices.ContainsFunc(fs.writtenBy(j), func(v *version) bool { return len(fs.waiters[v]) > 0 || v.owed() })
}
