package dispatch

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// storedResult is the outputs of a job that was done, under the key of that job. Runs name it
// that were retired and are kept, and jobs of runs that were not.
//
// A file of it may be named by versions of several jobs. It is removed with the result only, unless
// there is just one such job, and no retired run has ever named the result.
type storedResult struct {
	job     string
	digest  string
	inputs  []records.Mark
	made    uint64 // incarnation
	kept    uint64 // orders those that runs left in this incarnation; 0: left before
	outputs []output
	origin  taskqueue.Origin

	scope string            // Run.Scope of those that may take it
	runs  []taskqueue.RunID // that were retired, are kept, and name it
	left  instant           // since when no run that is kept names it; 0: one does, or none that was retired ever did
	// takers are the jobs of runs that were not retired which are Done under its key. Of those
	// whose result is their own the outputs stand in their commits.
	takers []*job
}

// resultKind says whose the result of a job is that is done.
type resultKind uint8

const (
	ownResult   resultKind = iota // it has made it, and its commit holds the outputs
	lentResult                    // it has made it, and a result of the journal holds the outputs, as others have taken it
	takenResult                   // it was taken from a result of the journal, though it may have been made again since
)

// inJournal reports whether a result of the journal holds the outputs of the job.
func (j *job) inJournal() bool { return j.result != ownResult }

// wasTaken reports whether the job was committed from the result of another one.
func (j *job) wasTaken() bool { return j.result == takenResult || j.committed == records.ReusedAttempt }

func (j *job) origin() taskqueue.Origin {
	return taskqueue.Origin{Run: j.id.Run(), Account: j.step.run.Account, Job: j.name}
}

// originOf says who made the result that a job has taken, where that is known.
func (jn *journal) originOf(j *job) *taskqueue.Origin {
	r := jn.results[j.key]
	if !j.wasTaken() || r == nil || r.origin.Run == 0 {
		return nil
	}
	o := r.origin
	return &o
}

// names reports whether a stored file is one of the result.
func (r *storedResult) names(pfn string) bool {
	return slices.ContainsFunc(r.outputs, func(o output) bool { return o.PFN == pfn })
}

// dropped is for a stored file that is being removed: nobody takes it any more. The job that had it has
// the result recorded anew.
func (r *storedResult) dropped(pfn string) {
	if r == nil || !r.names(pfn) {
		return
	}
	r.outputs = slices.Clone(r.outputs)
	for i := range r.outputs {
		if o := &r.outputs[i]; o.PFN == pfn {
			o.PFN = ""
		}
	}
}

// lasts reports whether the stored files of the result stay whatever the jobs need that have it: a
// run that is kept names it, or one did.
func (r *storedResult) lasts() bool { return len(r.runs) > 0 || r.left != 0 }

// unused reports whether no run names the result.
func (r *storedResult) unused() bool { return len(r.runs)+len(r.takers) == 0 }

func (r *storedResult) leave(j *job) {
	r.takers = slices.DeleteFunc(r.takers, func(x *job) bool { return x == j })
}

// isShared reports whether the stored file of a version belongs to a result that others name,
// or have named.
func (fs *files) isShared(v *version) bool {
	if v.writer == nil {
		return false
	}
	r := fs.journal.results[v.writer.key]
	return r != nil && (len(r.takers) > 1 || r.lasts() || !v.writer.inJournal()) && r.names(v.pfn)
}

// inputMarks appends the marks of the job's inputs.
func (j *job) inputMarks(list []records.Mark) []records.Mark {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			list = append(list, v.identity.Mark())
		}
	}
	return list
}

// resultForm is part of the key of each result. It changes when results that
// were stored before must not be taken any more: those of form 1 may have been
// made from other contents of an input than they say.
const resultForm = "2"

// sharedForm takes its place where runs share results.
const sharedForm = "shared 1"

// shares reports whether the job may have twins. One without outputs is there for something else, which
// nobody else has when it is done; it is known by its name.
func (j *job) shares() bool { return j.step.run.Scope != "" && len(j.outputs) > 0 }

// keyOf is the hash of all that decides what the job writes: its digest, the
// identities of its inputs and the names of its outputs, and who may take it. Within one
// workflow its name counts too. It is zero for a job without a digest.
func (j *job) keyOf() identity {
	if j.text.digest == "" {
		return identity{}
	}
	var buffer [1024]byte
	b := buffer[:0]
	if r := j.step.run; r.Scope == "" {
		b = appendPart(appendPart(b, resultForm), j.name)
	} else {
		b = appendPart(appendPart(b, sharedForm), r.Scope)
		if r.NoReuse {
			b = appendPart(b, fmt.Sprint("run ", r.ID))
		}
		if !j.shares() {
			b = appendPart(b, j.name)
		}
	}
	b = appendPart(b, j.text.digest)
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			b = appendPart(b, v.file.lfn)
			b = append(b, v.identity[:]...)
		}
	}
	for _, o := range j.outputs {
		b = appendPart(b, o.LFN)
	}
	sum := sha256.Sum256(b)
	return identity(sum[:16])
}

// reuse commits a job whose result is known. The inputs need not be there any more, only known.
func (c *Core) reuse(j *job) bool {
	j.key = j.keyOf()
	if j.key == (identity{}) || j.step.run.NoReuse && j.step.run.Scope == "" {
		return false
	}
	var known []output
	r, twin := c.journal.results[j.key], (*job)(nil)
	if r != nil {
		known = r.outputs
	} else if twin = c.jobs.twins.done(j); twin != nil {
		known = c.files.toKeep(twin)
	} else {
		return false
	}
	outputs := j.reusable(known)
	if outputs == nil || j.cannotPublish(outputs) || c.files.choseOthers(j, outputs) {
		return false
	}
	if twin != nil {
		c.lend(twin, []*job{twin})
	}
	j.result, j.committed = takenResult, records.ReusedAttempt
	files := c.commit(j, outputs, nil)
	c.event(taskqueue.Event{Kind: taskqueue.JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Reused: true,
		Files: files})
	return true
}

// lend makes the outputs of a job that is done a result that others take, and that runs name.
func (c *Core) lend(j *job, takers []*job, runs ...taskqueue.RunID) {
	r := c.files.resultOf(j)
	r.takers, r.runs = takers, runs
	c.journal.results[j.key] = r
	j.result = lentResult
	c.jobs.twins.remove(j)
	c.journal.persistCommit(j, nil)
	c.journal.persistResult(j.key, r)
}

// resultOf is a result made of the outputs of a committed job.
func (fs *files) resultOf(j *job) *storedResult {
	r := &storedResult{ // it outlives the texts of the run
		job: strings.Clone(j.name), digest: strings.Clone(j.text.digest), inputs: j.inputMarks(nil),
		made: uint64(j.committed >> 32), outputs: fs.toKeep(j),
	}
	if run := j.step.run; run.Scope != "" {
		r.origin, r.scope = j.origin(), run.Scope
		if run.NoReuse {
			r.scope = "" // nobody else can take it
		}
	}
	return r
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

// enterResult notes that a job which is committed now has the result of its key, if there is one.
func (fs *files) enterResult(j *job) {
	r := fs.journal.results[j.key]
	if r == nil || j.key == (identity{}) {
		return
	}
	r.takers = append(r.takers, j)
	fs.complete(r, j)
}

// complete gives a result what it lacks and a job has made under the same key. Those whose outputs
// it holds would get it too, so it waits until there are none.
func (fs *files) complete(r *storedResult, j *job) {
	if j.inJournal() || slices.ContainsFunc(r.takers, func(x *job) bool { return x.inJournal() }) {
		return
	}
	var own []output
	changed := false
	for i := range r.outputs {
		o := &r.outputs[i]
		if o.PFN != "" {
			continue
		}
		if own == nil {
			own = fs.toKeep(j)
		}
		at := slices.IndexFunc(own, func(x output) bool { return x.LFN == o.LFN && x.PFN != "" })
		if at < 0 || fs.removing[own[at].PFN] {
			continue
		}
		if !changed {
			r.outputs = slices.Clone(r.outputs)
			changed = true
		}
		r.outputs[i] = own[at]
	}
	if changed {
		fs.journal.persistResult(j.key, r)
	}
}

// detach has the commit of a job hold its outputs, which are no longer those of the result that it has
// with others.
func (fs *files) detach(j *job) {
	j.result = ownResult
	fs.journal.persistCommit(j, fs.recorded(j))
}

// cannotPublish reports whether an output is to be published which is stored no
// more, since a later version had taken its place: this time it may be the last
// one.
func (j *job) cannotPublish(outputs []output) bool {
	for i := range outputs {
		if x := j.outputFor(outputs[i].LFN); x.Publish && x.Storage == taskqueue.StorageElement && outputs[i].PFN == "" {
			return true
		}
	}
	return false
}

// choseOthers reports whether a result holds a file that another job of this run
// chose to write. The job runs then, and is told so if that is still the case.
func (fs *files) choseOthers(j *job, outputs []output) bool {
	for i := range outputs {
		f := j.files().Find(outputs[i].LFN)
		if outputs[i].Pattern != "" && f != nil && f.chosenBefore(j) != nil {
			return true
		}
	}
	return false
}

// reusable gives the outputs of an earlier run their new versions, or returns
// nil if they are not those that the job promises.
func (j *job) reusable(stored []output) []output {
	outputs := append(make([]output, 0, len(stored)), stored...)
	named := 0
	for i := range outputs {
		o := &outputs[i]
		x := j.outputFor(o.LFN)
		if x == nil {
			return nil
		}
		if o.Cached && x.Storage == taskqueue.StorageElement {
			return nil // the job that stores it has still to be done
		}
		o.Pattern = ""
		if x.Pattern {
			o.Pattern = x.LFN
		} else {
			named++
		}
	}
	for _, o := range j.outputs {
		if !o.Pattern {
			named--
		}
	}
	if named != 0 {
		return nil
	}
	return outputs
}

// Foresee returns the jobs that are still to come to their turn and will then
// take the result of an earlier run, if nobody adds any before them: what a job
// writes is known by its key before it is written. It also returns those that are done, or
// would be so, and run again: a job that runs reads what was lost of their outputs. The
// Core must not be stepped any more.
func (c *Core) Foresee() (reuse, again map[taskqueue.JobID]bool) {
	reuse, again = make(map[taskqueue.JobID]bool), make(map[taskqueue.JobID]bool)
	lacks := make(map[*version]bool) // of those that are reused
	var jobs []*job                  // who writes a version stands before who reads it
	for j := range c.jobs.all {
		jobs = append(jobs, j)
		if j.state == taskqueue.Done || j.text.digest == "" {
			continue
		}
		j.key = j.keyOf()
		if r, ok := c.journal.results[j.key]; ok && !j.step.run.NoReuse {
			outputs := j.reusable(r.outputs)
			reuse[j.id] = outputs != nil && !j.cannotPublish(outputs)
			for i := range j.requests {
				v := j.requests[i].write
				lost := func(o output) bool { return o.LFN == v.file.lfn && o.PFN == "" }
				lacks[v] = v != nil && slices.ContainsFunc(outputs, lost)
			}
		}
		for i := range j.requests {
			if v := j.requests[i].write; v != nil {
				v.identity = j.identityOf(v.file.lfn)
			}
		}
	}
	for _, j := range slices.Backward(jobs) {
		if !again[j.id] && (j.state == taskqueue.Done || reuse[j.id]) {
			continue
		}
		for i := range j.requests {
			v := j.requests[i].read
			if v == nil || v.writer == nil {
				continue
			}
			if w := v.writer; w.state == taskqueue.Done && v.state == gone || reuse[w.id] && lacks[v] {
				again[w.id] = true
				delete(reuse, w.id)
			}
		}
	}
	return reuse, again
}

// Results is how many results the Core has.
func (c *Core) Results() int { return len(c.journal.results) }

// IsUnused reports whether a result, by its key, is among those that Unused returns.
func (c *Core) IsUnused(key string) bool {
	id, err := records.ParseIdentity(key)
	r := c.journal.results[id]
	return err == nil && r != nil && r.unused()
}

// forgetResults forgets results that no run names.
func (c *Core) forgetResults(keys []string) error {
	for _, text := range keys {
		key, err := records.ParseIdentity(text)
		if err != nil {
			return refuse("dispatch: %q is no key of a result", text)
		}
		r := c.journal.results[key]
		if r == nil || !r.unused() {
			continue
		}
		delete(c.journal.results, key)
		c.journal.forget(records.TableResult, 0, text)
		for _, o := range r.outputs {
			if o.PFN != "" {
				c.files.remove(o.PFN)
			}
		}
	}
	return nil
}

// Unused returns the results that no run names, so far, the oldest first: by the incarnation, and
// those of this one as their runs were retired. The caller may remove them, with their files, when no job
// will come any more that could; a Core that is loaded afterwards no longer
// knows them.
func (c *Core) Unused() []taskqueue.UnusedResult {
	var list []taskqueue.UnusedResult
	for _, key := range c.journal.resultKeys() {
		if r := c.journal.results[key]; r.unused() {
			list = append(list, r.asUnused(key))
		}
	}
	return list
}

func (r *storedResult) asUnused(key identity) taskqueue.UnusedResult {
	u := taskqueue.UnusedResult{Record: taskqueue.Record{Table: records.TableResult, Key: key.Hex()}, Job: r.job}
	for _, o := range r.outputs {
		if o.PFN != "" {
			u.PFNs, u.Bytes = append(u.PFNs, o.PFN), u.Bytes+o.Size
		}
	}
	return u
}
