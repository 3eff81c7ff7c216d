package dispatch

import (
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// A job with a checkpoint names a folder in which its command saves its own state. An attempt
// that is ended before its time - its pilot leaves, or its time is over - brings that folder with
// its result, stored under a name that is unique to the attempt, and the next attempt begins with
// it. The folder is fenced as an output is: that of an attempt which does not count any more is
// removed unseen, and what is kept is durable with the fate of the job. There is one at a time. It
// goes when the job is done, or its run is retired. Until then copies of it in caches count where
// pilots are compared for the job, and do not go first.

// A command may also say while it runs that what it has saved is whole. Its pilot stores that at once,
// and tells of it in each Sync until the attempt ends: so it outlives the pilot. From then on failures
// and losses count anew, since the job has come further. Of a gang, the first task saves.

// savedBy returns the folder that an attempt has brought which was ended before its time, or nil.
func (j *job) savedBy(r *taskqueue.Result) *taskqueue.WrittenFile {
	if j.policy.checkpoint == "" || r.Outcome != taskqueue.Ended && r.Outcome != taskqueue.Lost &&
		r.Outcome != taskqueue.OutOfTime {
		return nil
	}
	i := slices.IndexFunc(r.Outputs, func(w taskqueue.WrittenFile) bool {
		return w.LFN == j.policy.checkpoint &&
			w.PFN != ""
	})
	if i < 0 {
		return nil
	}
	return &r.Outputs[i]
}

// takeCheckpoint keeps what an attempt that counts has saved, and lets the job go on from there:
// that is no failure. It reports whether the result is dealt with. An attempt that leaves the
// very bytes with which it began has come no further; it is counted as any other, so that no job
// runs in vain for ever.
func (c *Core) takeCheckpoint(by taskqueue.PilotID, j *job, r *taskqueue.Result) bool {
	w := j.savedBy(r)
	if w == nil {
		return false
	}
	f, before := j.itsFate(), j.saved()
	f.Reason = r.Describe("")
	further := before == nil || before.Attempt == r.Attempt || before.Size != w.Size || before.Adler32 != w.Adler32
	f.remember(r.Attempt) // its pilot may say the result again, and the folder is to stay
	f.Saved = savedOf(r.Attempt, w)
	c.files.removeSaved(before)
	c.files.saves[taskqueue.Tag(r.Attempt)] = true
	r.Outputs = slices.DeleteFunc(slices.Clone(r.Outputs), func(o taskqueue.WrittenFile) bool { return o.LFN == w.LFN })
	c.files.discard(j, r)
	c.journal.persistFate(j) // with the removal of the folder before
	if !further {
		return false
	}
	c.event(taskqueue.Event{
		Kind: taskqueue.JobRetried, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r,
		Reason: f.Reason + "; it goes on from its checkpoint",
	})
	c.placement.requeue(j)
	return true
}

// takeSaved takes what attempts at a pilot have saved while they run. What an attempt has stored that
// does not count any more is removed.
func (c *Core) takeSaved(p *pilot, s *taskqueue.Sync) {
	for i := range s.Saved {
		m := &s.Saved[i]
		j := c.jobs.find(m.Of.Job)
		if j == nil || j.policy.checkpoint == "" || m.File.LFN != j.policy.checkpoint || m.File.PFN == "" {
			continue
		}
		before := j.saved()
		if before != nil && before.PFN == m.File.PFN {
			continue
		}
		a := c.fleet.attempts[m.Of.Attempt]
		if a == nil || a.job != j || a.pilot != p || a.task != 0 ||
			before != nil && before.Attempt == a.id && before.Version >= m.File.Version {
			c.files.remove(m.File.PFN)
			continue
		}
		w, f := &m.File, j.itsFate()
		f.Saved = savedOf(a.id, w)
		f.Tries, f.Losses = 0, 0
		c.files.removeSaved(before)
		c.files.saves[taskqueue.Tag(a.id)] = true
		c.journal.persistFate(j)
	}
}

func savedOf(id taskqueue.AttemptID, w *taskqueue.WrittenFile) *records.Saved {
	return &records.Saved{
		Attempt: id, Version: w.Version, PFN: w.PFN, Size: w.Size, Adler32: w.Adler32, Hash: w.Hash,
	}
}

// saved is what the next attempt begins with; nil: nothing.
func (j *job) saved() *records.Saved {
	if j.fate == nil {
		return nil
	}
	return j.fate.Saved
}

// checkpointInput is the folder as an input of the next attempt, which gets a copy of its own.
func (j *job) checkpointInput() (in taskqueue.InputFile, ok bool) {
	s := j.saved()
	if s == nil {
		return in, false
	}
	return taskqueue.InputFile{
		File: taskqueue.FileRef{Run: j.id.Run(), LFN: j.policy.checkpoint, Version: s.Version, Tag: taskqueue.Tag(s.Attempt)},
		Size: s.Size, PFN: s.PFN,
		Adler32: s.Adler32, Hash: s.Hash, Committed: s.Hash != "", Access: taskqueue.AccessCopy,
	}, true
}

// loseCheckpoint is for a checkpoint that an attempt has found lost: the job begins anew.
func (c *Core) loseCheckpoint(j *job, lost *taskqueue.LostFile) {
	if s := j.saved(); s != nil && lost.PFN == s.PFN {
		c.dropCheckpoint(j)
	}
}

// dropCheckpoint removes what a job has saved that does not need it any more.
func (c *Core) dropCheckpoint(j *job) {
	if s := j.saved(); s != nil {
		j.fate.Saved = nil
		c.files.removeSaved(s)
		c.journal.persistFate(j)
	}
}

func (fs *files) removeSaved(s *records.Saved) {
	if s != nil {
		delete(fs.saves, taskqueue.Tag(s.Attempt))
		fs.remove(s.PFN)
	}
}

// holdsSaved reports whether the folder that the next attempt of the job begins with is in the
// pilot's cache. It is no version, so it stands among the other copies there.
func (p *pilot) holdsSaved(j *job) bool {
	s := j.saved()
	return s != nil && p.copies.other.Has(taskqueue.FileRef{LFN: j.policy.checkpoint, Version: s.Version,
		Tag: taskqueue.Tag(s.Attempt)})
}

// findsSaved reports whether the pilot does not hold that folder, and another that shares its cache
// on the same host does.
func (p *pilot) findsSaved(j *job) bool {
	return j.saved() != nil && p.info.CacheDir != "" && !p.holdsSaved(j) &&
		slices.ContainsFunc(p.host.pilots, func(q *pilot) bool { return q.info.CacheDir != "" && q.holdsSaved(j) })
}
