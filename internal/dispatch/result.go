package dispatch

import (
	"fmt"
	"slices"
)

// resultArrived takes the end of an attempt, whoever reports it and however
// often.
func (c *Core) resultArrived(by PilotID, p *pilot, r *Result) {
	a := c.fleet.attempts[r.Attempt]
	j := c.queue.find(r.Job)
	if !c.journal.foreign(r.Attempt) {
		for i := range r.Lost {
			c.loseFile(&r.Lost[i])
		}
	}
	switch {
	case c.journal.foreign(r.Attempt):
		c.files.discardForeign(r)
	case j == nil || a != nil && a.job != j:
		c.files.discard(nil, r)
	case a != nil:
		c.fleet.removeAttempt(a)
		c.attemptEnded(by, p, j, r, a)
	case j.committed == r.Attempt || j.counted(r.Attempt):
		// A repetition; it was dealt with.
	case j.live() && (r.Outcome == Succeeded || r.Outcome != Lost && r.Attempt>>32 < AttemptID(c.journal.incarnation)):
		c.attemptEnded(by, p, j, r, nil)
	default:
		c.reject(j, r)
	}
}

// attemptEnded deals with the first report of the end of an attempt; a is nil
// when it had been given up or belongs to an earlier incarnation.
func (c *Core) attemptEnded(by PilotID, p *pilot, j *job, r *Result, a *attempt) {
	switch {
	case !j.live():
		c.reject(j, r)
	case r.Outcome == Succeeded:
		if problem := c.files.checkOutputs(j, r); problem != "" {
			failed := *r
			failed.Outcome, failed.Message = MissingOutput, problem
			c.attemptFailed(by, j, &failed, hostOf(p))
			return
		}
		c.fleet.learn(p, j, &r.Usage)
		c.placement.unready(j)
		c.files.unawait(j)
		c.fleet.endAttempts(j, a)
		c.commitResult(by, p, j, r)
	case r.Outcome == Ended:
		c.files.discard(j, r)
		c.placement.again(j)
	case r.Outcome == InputLost:
		j.itsFate().Private = true
		c.lossCounted(by, j, r, "")
	case r.Outcome == Lost:
		c.lossCounted(by, j, r, hostOf(p))
	default:
		c.attemptFailed(by, j, r, hostOf(p))
	}
}

func hostOf(p *pilot) string {
	if p == nil {
		return ""
	}
	return p.info.Host
}

// endAttempts has all attempts of the job ended but one.
func (fl *fleet) endAttempts(j *job, but *attempt) {
	for a := j.attempt; a != nil; {
		next := a.next
		if a != but && !a.ended {
			fl.endAttempt(a)
		}
		a = next
	}
}

// reject discards what an attempt wrote, for good: its pilot may say the result
// again when the job is live once more, and the files are gone then.
func (c *Core) reject(j *job, r *Result) {
	c.files.discard(j, r)
	if r.Outcome == Succeeded {
		j.itsFate().remember(r.Attempt)
		c.journal.persistFate(j)
	}
}

// discard removes what an attempt wrote that is not committed. Physical names
// are unique to the attempt, so nothing else is hit; what a version in use
// names is kept all the same.
func (fs *files) discard(j *job, r *Result) {
	if len(r.Outputs) == 0 {
		return
	}
	used := fs.inUse(j)
	for _, w := range r.Outputs {
		if w.PFN != "" && !used[w.PFN] {
			fs.remove(w.PFN)
		}
	}
}

// discardForeign removes what an attempt of an earlier submission wrote, unless
// that was committed there: then it may be a result that this one takes.
func (fs *files) discardForeign(r *Result) {
	kept := make(map[string]bool)
	for _, stored := range fs.journal.results {
		for i := range stored.outputs {
			kept[stored.outputs[i].PFN] = true
		}
	}
	for i := range r.Outputs {
		w := &r.Outputs[i]
		if w.PFN != "" && !kept[w.PFN] && !fs.reads(w) {
			fs.remove(w.PFN)
		}
	}
}

// reads says whether a version of this submission is what was written there.
func (fs *files) reads(w *WrittenFile) bool {
	f := fs.find(w.LFN)
	return f != nil && slices.ContainsFunc(f.versions, func(v *version) bool { return v.pfn == w.PFN })
}

// inUse are the physical names of what the job was committed with.
func (fs *files) inUse(j *job) map[string]bool {
	if j == nil || j.committed == 0 {
		return nil
	}
	used := make(map[string]bool)
	for _, v := range fs.writtenBy(j) {
		used[v.pfn] = true
	}
	return used
}

// writtenBy returns the versions of files that the job has made or is to make.
func (fs *files) writtenBy(j *job) []*version {
	list := make([]*version, 0, len(j.outputs))
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && !v.file.pattern {
			list = append(list, v)
		}
	}
	return append(list, fs.matched[j.id]...)
}

// checkOutputs says what is wrong with the outputs of a successful attempt.
func (fs *files) checkOutputs(j *job, r *Result) string {
	find := r.byLFN()
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && !v.file.pattern && find(v.file.lfn) == nil {
			return fmt.Sprintf("output %s was not written", v.file.lfn)
		}
	}
	if lfn := repeated(r.Outputs, func(w WrittenFile) string { return w.LFN }); lfn != "" {
		return fmt.Sprintf("output %s is reported twice", lfn)
	}
	for i := range r.Outputs {
		if problem := fs.checkOutput(j, &r.Outputs[i]); problem != "" {
			return problem
		}
	}
	if j.again {
		for _, v := range fs.matched[j.id] {
			if find(v.file.lfn) == nil {
				return fmt.Sprintf("%s was written by the attempt before, but not by this one", v.file.lfn)
			}
		}
	}
	return ""
}

func (fs *files) checkOutput(j *job, w *WrittenFile) string {
	o := j.outputFor(w.LFN)
	switch {
	case o == nil:
		return fmt.Sprintf("%s was written, which the job does not name as an output", w.LFN)
	case o.Storage == StorageElement && w.PFN == "":
		return fmt.Sprintf("output %s was not stored", w.LFN)
	case !o.Pattern:
		return ""
	}
	f := fs.find(w.LFN)
	if f == nil {
		return ""
	}
	if other := f.chosenBefore(j); other != nil {
		return TwoWriters(w.LFN, "job "+other.name, "job "+j.name)
	}
	for _, v := range f.versions {
		if v.writer == j {
			continue
		}
		if v.writer != nil && v.state != present && v.state != gone && !v.throughPattern() {
			return fmt.Sprintf("%s, written through the pattern %s, is also written by job %s: give them different names", w.LFN, o.LFN, v.writer.name)
		}
		if v.number == Version(j.id) || v.before(j) != (v.number < Version(j.id)) {
			return fmt.Sprintf("%s, written through the pattern %s, exists in a version that would come after it", w.LFN, o.LFN)
		}
	}
	return ""
}

// throughPattern says whether the version was, or is to be, written through a
// pattern.
func (v *version) throughPattern() bool { return v.writer != nil && v.number == Version(v.writer.id) }

// before says whether the version has its place before the outputs of the job.
func (v *version) before(j *job) bool { return v.writer == nil || v.writer.id < j.id }

// few is up to how many elements a search through all of them is faster than a
// map.
const few = 16

// byLFN returns what finds the outputs of a result by their names.
func (r *Result) byLFN() func(lfn string) *WrittenFile {
	if len(r.Outputs) <= few {
		return func(lfn string) *WrittenFile {
			for i := range r.Outputs {
				if r.Outputs[i].LFN == lfn {
					return &r.Outputs[i]
				}
			}
			return nil
		}
	}
	named := make(map[string]*WrittenFile, len(r.Outputs))
	for i := range r.Outputs {
		named[r.Outputs[i].LFN] = &r.Outputs[i]
	}
	return func(lfn string) *WrittenFile { return named[lfn] }
}

// outputFor returns the output that the file belongs to: that of its name, or
// the first pattern that it matches.
func (j *job) outputFor(lfn string) *Output {
	var byPattern *Output
	for i := range j.outputs {
		o := &j.outputs[i]
		if !o.Pattern && o.LFN == lfn {
			return o
		}
		if o.Pattern && byPattern == nil && matches(o.LFN, lfn) {
			byPattern = o
		}
	}
	return byPattern
}

// matches reports whether the name matches the pattern, in which * stands for
// any characters but '/'.
func matches(pattern, name string) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0 && name[mark] != '/':
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
