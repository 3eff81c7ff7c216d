package dispatch

import (
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// A stored file that is not there, or holds other bytes than were stored, counts as
// lost from when it is told, with all copies of it: who wrote to it may have written to
// them too. Its version stays, and is made again like one that was in caches only: when
// a job needs it, and at once if it is a result that is to stand under its plain name.

// lostTag is the tag of a version that was lost. No copy bears it.
const lostTag taskqueue.Tag = 2

// owed reports whether the version is to stand under its plain name, and was lost.
func (v *version) owed() bool {
	if v.state != gone || v.writer == nil || v.file.made() != v {
		return false
	}
	o := v.writer.outputFor(v.file.lfn)
	return o != nil && o.Publish && o.Storage == taskqueue.StorageElement
}

// outputFor returns the output that the file belongs to: that of its name, or
// the first pattern that it matches.
func (j *job) outputFor(lfn string) *taskqueue.Output {
	var byPattern *taskqueue.Output
	for i := range j.outputs {
		o := &j.outputs[i]
		if !o.Pattern && o.LFN == lfn {
			return o
		}
		if o.Pattern && byPattern == nil && logical.Matches(o.LFN, lfn) {
			byPattern = o
		}
	}
	return byPattern
}

// made is the highest version that ever was committed, also if it cannot be made
// again. It decides what is to stand under the plain name: no older version takes
// the place of one that is lost.
func (f *file) made() *version {
	for i := len(f.versions) - 1; i >= 0; i-- {
		if f.versions[i].identity != (identity{}) {
			return f.versions[i]
		}
	}
	return nil
}

func (j *job) publishes() bool {
	return slices.ContainsFunc(j.outputs, func(o taskqueue.Output) bool {
		return o.Publish &&
			o.Storage == taskqueue.StorageElement
	})
}

// publishAgain has a lost version published again when it has been made again, unless a
// later one was.
func (fs *files) publishAgain(v *version) {
	f := v.file
	under := fs.publishing[f] == v
	if v.toPublish = false; under {
		delete(fs.publishing, f)
		f.publishFrom = v.number // nobody has confirmed it
	}
	if v.owed() {
		f.publishFrom = min(f.publishFrom, v.number)
		fs.journal.persistPublished(f, v.number-1)
	}
	if under {
		fs.publishNext(f)
	}
}

// lostOutputs are the outputs of a job that is done which were stored, are the last
// versions of their files, and were lost.
func (fs *files) lostOutputs(j *job) []*version {
	if j.state != taskqueue.Done {
		return nil
	}
	return slices.DeleteFunc(fs.writtenBy(j), func(v *version) bool {
		return v.state != gone || v.tag != lostTag || v.file.made() != v
	})
}

// loseResults is for results of earlier runs: what they have lost is made again when
// it is needed. It is told why, by PFN.
func (fs *files) loseResults(lost map[string]string) {
	isLost := func(pfn string) bool { _, ok := lost[pfn]; return ok }
	fs.changeResults(isLost, func(r *storedResult, o *output) {
		if len(r.Takers) == 0 { // else an event tells whose it is
			fs.effects.Events = append(fs.effects.Events, taskqueue.Event{Kind: taskqueue.FileLost, Name: r.Job,
				Reason: o.LFN + ": " + lost[o.PFN]})
		}
		fs.remove(o.PFN)
		o.PFN, o.Tag = "", lostTag
	})
}

// changeResults changes the outputs of results that stand in some places, and records these
// results anew.
func (fs *files) changeResults(in func(pfn string) bool, change func(*storedResult, *output)) {
	for _, key := range fs.journal.results.Keys(func(r *storedResult) bool { return r.Holds(in) }) {
		r := fs.journal.results.Of(key)
		r.Change(in, func(o *output) { change(r, o) })
		fs.journal.persistResult(key, r)
	}
}

// changeOutputs has the outputs of a job recorded anew, once in a transition.
func (fs *files) changeOutputs(j *job) {
	if n := len(fs.work.changed); n == 0 || fs.work.changed[n-1] != j {
		fs.work.changed = append(fs.work.changed, j)
	}
}

// upToDate is for a job whose record names no removed outputs any more.
func (fs *files) upToDate(j *job) {
	o := fs.outdated[j]
	if o == nil {
		return
	}
	delete(fs.outdated, j)
	for _, pfn := range o.pfns {
		delete(fs.stillNamed, pfn)
		if !fs.removing[pfn] {
			fs.journal.forget(records.TableRemove, 0, pfn)
		}
	}
}

// store says where a version is stored, empty for nowhere, and how large it is. What was stored by
// a job counts for the user of its run.
func (v *version) store(pfn string, size int64) {
	var more int64
	if v.pfn != "" {
		more -= v.size
	}
	if v.pfn, v.size = pfn, size; pfn != "" {
		more += size
	}
	if more == 0 || v.writer == nil {
		return
	}
	v.writer.share().Store(more)
}

// notStored is for a version whose stored copy is to go, or is gone.
func (fs *files) notStored(v *version) {
	if v.pfn == "" {
		return
	}
	v.store("", v.size)
	if v.writer != nil {
		fs.runs.shares.gaveBack(v.writer.share())
	}
}

// dropRemoved is for a Load: what is being removed is stored no more, whatever records of
// jobs and results name.
func (c *Core) dropRemoved() {
	fs := &c.files
	if len(fs.removing) == 0 {
		return
	}
	for j := range c.jobs.all {
		for _, v := range fs.writtenBy(j) {
			if fs.removing[v.pfn] {
				fs.notStored(v)
				v.state = gone
				fs.changeOutputs(j)
			}
		}
	}
	isRemoved := func(pfn string) bool { return fs.removing[pfn] }
	fs.changeResults(isRemoved, func(_ *storedResult, o *output) { o.PFN = "" })
}

// recorded are the outputs of a committed job as they are recorded.
func (fs *files) recorded(j *job) []output {
	versions := fs.writtenBy(j)
	outputs := make([]output, len(versions))
	for i, v := range versions {
		outputs[i] = output{
			LFN: v.file.lfn, PFN: v.pfn, Size: v.size, Records: v.records, Adler32: v.adler32(), Written: v.written(),
			Hash: fs.hash(v).committed(),
		}
		if j.inJournal() || v.tag != taskqueue.Tag(j.committed) {
			outputs[i].Tag = v.tag
		}
		noteWanted(&outputs[i], j.outputFor(v.file.lfn))
	}
	return outputs
}

// toKeep are the outputs of a committed job as others can take them.
func (fs *files) toKeep(j *job) []output {
	outputs := fs.recorded(j)
	for i := range outputs {
		o := &outputs[i]
		o.LFN, o.Pattern, o.Tag = strings.Clone(o.LFN), strings.Clone(o.Pattern), o.TagOf(j.committed)
	}
	return outputs
}

// persistOutputs is for a committed job of whose outputs a copy came or went.
func (fs *files) persistOutputs(j *job) {
	outputs := fs.recorded(j)
	r := fs.journal.results.Of(j.key)
	switch {
	case !j.inJournal():
		fs.journal.persistCommit(j, outputs)
		if r != nil {
			fs.complete(r, j)
		}
	case len(r.Takers) == 1 && !r.Lasts():
		r.Outputs, r.Made = outputs, fs.journal.incarnation
		fs.journal.persistResult(j.key, r)
	default:
		if !r.Agrees(outputs) {
			fs.detach(j)
		}
		fs.journal.persistResult(j.key, r) // a file of it may just have been dropped
	}
	fs.upToDate(j)
}

// detach has the commit of a job hold its outputs, which are no longer those of the result that it has
// with others.
func (fs *files) detach(j *job) {
	j.result = ownResult
	fs.journal.persistCommit(j, fs.recorded(j))
}

// complete gives a result what it lacks and a job has made under the same key. Those whose outputs
// it holds would get it too, so it waits until there are none.
func (fs *files) complete(r *storedResult, j *job) {
	if j.inJournal() || slices.ContainsFunc(r.Takers, (*job).inJournal) {
		return
	}
	isGoing := func(pfn string) bool { return fs.removing[pfn] }
	if r.Complete(func() []output { return fs.toKeep(j) }, isGoing) {
		fs.journal.persistResult(j.key, r)
	}
}

// Stored yields the stored files that runs need, or may need: those that unfinished
// jobs read, the results that are to stand under their plain names, and all of earlier
// runs that it may take. Files that existed before are none of them. The Core must not
// be stepped meanwhile.
func (c *Core) Stored(yield func(taskqueue.StoredFile) bool) {
	for f := range c.files.all {
		newest := f.newest()
		for _, v := range f.versions {
			if v.writer == nil || v.pfn == "" || v.state != present {
				continue
			}
			o := v.writer.outputFor(f.lfn)
			if v.pins == 0 && (v != newest || o == nil || !o.Publish) {
				continue
			}
			if !yield(v.stored()) {
				return
			}
		}
	}
	for _, key := range c.journal.results.Keys(func(r *storedResult) bool { return len(r.Takers) == 0 }) {
		for f := range c.journal.results.Of(key).Stored {
			if !yield(f) {
				return
			}
		}
	}
}

// StoredBy returns the outputs of a job as they are stored.
func (c *Core) StoredBy(id taskqueue.JobID) []taskqueue.StoredFile {
	j := c.jobs.find(id)
	if j == nil {
		return nil
	}
	var list []taskqueue.StoredFile
	for _, v := range c.files.writtenBy(j) {
		if v.state == present && v.pfn != "" {
			list = append(list, v.stored())
		}
	}
	return list
}

// HasLost reports whether a job is done and lacks outputs that were stored and were lost.
func (c *Core) HasLost(id taskqueue.JobID) bool {
	j := c.jobs.find(id)
	return j != nil && len(c.files.lostOutputs(j)) > 0
}
