package dispatch

import "encoding/hex"

// storedResult is what an earlier run of the workflow left: the outputs of
// the job whose key it is stored under.
type storedResult struct {
	job     string
	digest  string
	inputs  []string
	made    uint64 // incarnation
	outputs []output
}

// mark is the identity of a version, cut to what tells a person whether it
// changed.
func (v *version) mark() []byte { return v.identity[:3] }

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
	return hashed(b)
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
	outputs := j.reusable(r.outputs)
	if outputs == nil || j.cannotPublish(outputs) || c.files.choseOthers(j, outputs) {
		return false
	}
	c.queue.markReused(j)
	j.committed = reusedAttempt
	files := c.commit(j, outputs, nil)
	c.event(Event{Kind: JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Reused: true, Files: files})
	return true
}

// cannotPublish says that an output is to be published which is stored no more,
// since a later version had taken its place: this time it may be the last one.
func (j *job) cannotPublish(outputs []output) bool {
	for i := range outputs {
		if x := j.outputFor(outputs[i].LFN); x.Publish && x.Storage == StorageElement && outputs[i].PFN == "" {
			return true
		}
	}
	return false
}

func (q *queue) markReused(j *job) {
	j.reused = true
	j.step.Reused++
	q.totals.Reused++
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
