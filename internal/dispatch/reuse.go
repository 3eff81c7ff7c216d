package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// storedResult is what an earlier run of the workflow left: the outputs of
// the job whose key it is stored under.
type storedResult struct {
	job     string
	digest  string
	inputs  []string
	made    uint64 // incarnation
	kept    uint64 // orders those that runs left in this incarnation; 0: left before
	outputs []output
}

// inputMarks are the marks of the job's inputs, in hexadecimal.
func (j *job) inputMarks() []string {
	list := make([]string, 0, len(j.requests))
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			list = append(list, hex.EncodeToString(v.mark()))
		}
	}
	return list
}

// resultForm is part of the key of each result. It changes when results that
// were stored before must not be taken any more: those of form 1 may have been
// made from other contents of an input than they say.
const resultForm = "2"

// keyOf is the hash of all that decides what the job writes: its name, its
// digest, the identities of its inputs and the names of its outputs. It is
// zero for a job without a digest.
func (j *job) keyOf() identity {
	if j.digest == "" {
		return identity{}
	}
	var buffer [1024]byte
	b := appendPart(buffer[:0], resultForm)
	b = appendPart(b, j.name)
	b = appendPart(b, j.digest)
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

// reuse commits a job whose result is known from an earlier run. The inputs
// need not be there any more, only known.
func (c *Core) reuse(j *job) bool {
	j.key = j.keyOf()
	r, ok := c.journal.results[j.key]
	if !ok || j.key == (identity{}) {
		return false
	}
	delete(c.journal.results, j.key)
	c.journal.taken[j.key] = true
	outputs := j.reusable(r.outputs)
	if outputs == nil || j.cannotPublish(outputs) || c.files.choseOthers(j, outputs) {
		return false
	}
	j.reused, j.committed = true, reusedAttempt
	files := c.commit(j, outputs, nil)
	c.event(Event{Kind: JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Reused: true, Files: files})
	return true
}

// cannotPublish reports whether an output is to be published which is stored no
// more, since a later version had taken its place: this time it may be the last
// one.
func (j *job) cannotPublish(outputs []output) bool {
	for i := range outputs {
		if x := j.outputFor(outputs[i].LFN); x.Publish && x.Storage == StorageElement && outputs[i].PFN == "" {
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

// reusedAttempt stands for the attempt of an earlier run.
const reusedAttempt AttemptID = 1

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
		if o.Cached && x.Storage == StorageElement {
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
func (c *Core) Foresee() (reuse, again map[JobID]bool) {
	reuse, again = make(map[JobID]bool), make(map[JobID]bool)
	lacks := make(map[*version]bool) // of those that are reused
	var jobs []*job                  // who writes a version stands before who reads it
	for j := range c.jobs.all {
		jobs = append(jobs, j)
		if j.state == Done || j.digest == "" {
			continue
		}
		j.key = j.keyOf()
		if r, ok := c.journal.results[j.key]; ok {
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
		if !again[j.id] && (j.state == Done || reuse[j.id]) {
			continue
		}
		for i := range j.requests {
			v := j.requests[i].read
			if v == nil || v.writer == nil {
				continue
			}
			if w := v.writer; w.state == Done && v.state == gone || reuse[w.id] && lacks[v] {
				again[w.id] = true
				delete(reuse, w.id)
			}
		}
	}
	return reuse, again
}

// UnusedResult is a result of an earlier run that no job of this one has taken.
type UnusedResult struct {
	Record Record   // deletes it; its key is that of the result
	Job    string   // that it was made by
	PFNs   []string // of its outputs
}

// UnusedResults is how many results Unused returns.
func (c *Core) UnusedResults() int { return len(c.journal.results) }

// IsUnused reports whether a result, by its key, is among those that Unused returns.
func (c *Core) IsUnused(key string) bool {
	id, err := parseIdentity(key)
	_, ok := c.journal.results[id]
	return ok && err == nil
}

// forgetResults forgets results that no job has taken.
func (c *Core) forgetResults(keys []string) error {
	for _, text := range keys {
		key, err := parseIdentity(text)
		if err != nil {
			return refuse("dispatch: %q is no key of a result", text)
		}
		r, ok := c.journal.results[key]
		if !ok {
			continue
		}
		delete(c.journal.results, key)
		c.journal.forget(TableResult, 0, text)
		for _, o := range r.outputs {
			if o.PFN != "" {
				c.files.remove(o.PFN)
			}
		}
	}
	return nil
}

// Unused returns the results that no job has taken, so far, the oldest first: by the incarnation, and
// those of this one as their runs were retired. The caller may remove them, with their files, when no job
// will come any more that could; a Core that is loaded afterwards no longer
// knows them.
func (c *Core) Unused() []UnusedResult {
	keys := c.journal.resultKeys()
	list := make([]UnusedResult, len(keys))
	for i, key := range keys {
		list[i].Record = Record{Table: TableResult, Key: key.hex()}
		list[i].Job = c.journal.results[key].job
		for _, o := range c.journal.results[key].outputs {
			if o.PFN != "" {
				list[i].PFNs = append(list[i].PFNs, o.PFN)
			}
		}
	}
	return list
}
