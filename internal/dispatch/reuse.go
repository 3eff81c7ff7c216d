package dispatch

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/results"
	"fairway/internal/taskqueue"
)

// storedResult is what a job has made and others may take.
type storedResult = results.Result[*job]

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

// Run is the run that the job belongs to.
func (j *job) Run() taskqueue.RunID { return j.id.Run() }

func (j *job) origin() taskqueue.Origin {
	return taskqueue.Origin{Run: j.id.Run(), Account: j.step.run.Account, Job: j.name}
}

// originOf says who made the result that a job has taken, where that is known.
func (jn *journal) originOf(j *job) *taskqueue.Origin {
	r := jn.results.Of(j.key)
	if !j.wasTaken() || r == nil || r.Run == 0 {
		return nil
	}
	o := r.Origin()
	return &o
}

// isShared reports whether the stored file of a version belongs to a result that others name,
// or have named.
func (fs *files) isShared(v *version) bool {
	if v.writer == nil {
		return false
	}
	r := fs.journal.results.Of(v.writer.key)
	return r != nil && (len(r.Takers) > 1 || r.Lasts() || !v.writer.inJournal()) && r.Names(v.pfn)
}

// resultForm is part of the key of each result. It changes when results that
// were stored before must not be taken any more: those of form 1 may have been
// made from other contents of an input than they say.
const resultForm = "2"

// sharedForm takes its place where runs share results.
const sharedForm = "shared 1"

// mayHaveTwins reports whether the job may have twins. One without outputs is there for something else, which
// nobody else has when it is done; it is known by its name.
func (j *job) mayHaveTwins() bool { return j.step.run.Scope != "" && len(j.outputs) > 0 }

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
		if !j.mayHaveTwins() {
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
	r, twin := c.journal.results.Of(j.key), (*job)(nil)
	if r != nil {
		known = r.Outputs
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
	r.Takers, r.Runs = takers, runs
	c.journal.results.Add(j.key, r)
	j.result = lentResult
	c.jobs.twins.remove(j)
	c.journal.persistCommit(j, nil)
	c.journal.persistResult(j.key, r)
}

// resultOf is a result made of the outputs of a committed job.
func (fs *files) resultOf(j *job) *storedResult {
	r := records.Result{ // it outlives the texts of the run
		Job: strings.Clone(j.name), Digest: strings.Clone(j.text.digest), Inputs: j.inputMarks(nil),
		Made: uint64(j.committed >> 32), Outputs: fs.toKeep(j),
	}
	if run := j.step.run; run.Scope != "" {
		r.Run, r.Group, r.User = run.ID, run.Account.Group, run.Account.User
		if !run.NoReuse { // else nobody can take it
			r.Scope = run.Scope
		}
	}
	return &storedResult{Result: r}
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
		if r := c.journal.results.Of(j.key); r != nil && !j.step.run.NoReuse {
			outputs := j.reusable(r.Outputs)
			reuse[j.id] = outputs != nil && !j.cannotPublish(outputs)
			for i := range j.requests {
				v := j.requests[i].write
				lost := func(o output) bool { return o.LFN == v.file.lfn && o.PFN == "" }
				lacks[v] = v != nil && slices.ContainsFunc(outputs, lost)
			}
		}
		for v := range j.writes {
			v.identity = j.identityOf(v.file.lfn)
		}
	}
	for _, j := range slices.Backward(jobs) {
		if !again[j.id] && (j.state == taskqueue.Done || reuse[j.id]) {
			continue
		}
		for v := range j.inputs {
			if v.writer == nil {
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

// forgetResults forgets results that no run names.
func (c *Core) forgetResults(keys []string) error {
	for _, text := range keys {
		key, err := records.ParseIdentity(text)
		if err != nil {
			return refuse("dispatch: %q is no key of a result", text)
		}
		r := c.journal.results.Of(key)
		if r == nil || !r.IsUnused() {
			continue
		}
		c.journal.results.Remove(key)
		c.journal.forget(records.TableResult, 0, text)
		for f := range r.Stored {
			c.files.remove(f.PFN)
		}
	}
	return nil
}
