package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/logical"
)

// output is a written version as it is recorded.
type output struct {
	LFN     string `json:"l"`
	Pattern string `json:"p,omitempty"`
	PFN     string `json:"f,omitempty"` // empty: in caches only, or removed
	Cached  bool   `json:"c,omitempty"` // in caches only, as the job wanted
	Size    int64  `json:"s,omitempty"`
	Records int64  `json:"r,omitempty"`
	Adler32 uint32 `json:"a,omitempty"`
	Tag     Tag    `json:"t,omitempty"` // 0: the attempt that the commit names
}

// tag is that of the output of a job of which this attempt was committed.
func (o *output) tag(committed AttemptID) Tag {
	if o.Tag != 0 {
		return o.Tag
	}
	return Tag(committed)
}

// asWanted notes what the job said of the output that it is.
func (o *output) asWanted(x *Output) {
	o.Cached = o.PFN == "" && x.Storage == StorageCache
	if x.Pattern {
		o.Pattern = x.LFN
	}
}

// outputsOf are the outputs of a successful attempt, in the order of Writes and
// by name within a pattern. They are valid until the next call.
func (fs *files) outputsOf(j *job, r *Result) []output {
	fs.outputs = fs.outputs[:0]
	for i := range r.Outputs {
		w := &r.Outputs[i]
		o := output{LFN: w.LFN, PFN: w.PFN, Size: w.Size, Records: w.Records, Adler32: w.Adler32}
		o.asWanted(j.outputFor(w.LFN))
		fs.outputs = append(fs.outputs, o)
	}
	slices.SortFunc(fs.outputs, j.inOrderOfWrites)
	return fs.outputs
}

func (j *job) inOrderOfWrites(a, b output) int {
	if d := j.outputIndex(a) - j.outputIndex(b); d != 0 {
		return d
	}
	if a.LFN < b.LFN {
		return -1
	}
	return 1
}

func (j *job) outputIndex(o output) int {
	name := o.LFN
	if o.Pattern != "" {
		name = o.Pattern
	}
	return slices.IndexFunc(j.outputs, func(x Output) bool { return x.LFN == name })
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
	if j.regenerating {
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
	f := j.files().find(w.LFN)
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
		if v.number == Version(j.id.Number()) || v.before(j) != (v.number < Version(j.id.Number())) {
			return fmt.Sprintf("%s, written through the pattern %s, exists in a version that would come after it", w.LFN, o.LFN)
		}
	}
	return ""
}

// throughPattern reports whether the version was, or is to be, written through a
// pattern.
func (v *version) throughPattern() bool {
	return v.writer != nil && v.number == Version(v.writer.id.Number())
}

// before reports whether the version has its place before the outputs of the job.
func (v *version) before(j *job) bool { return v.writer == nil || v.writer.id < j.id }

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
		if o.Pattern && byPattern == nil && logical.Matches(o.LFN, lfn) {
			byPattern = o
		}
	}
	return byPattern
}

// Writers of names that are known before stand in the FIFO of the file. Names
// that are chosen by content have no such order: which of two versions a reader
// got would depend on which job ended first. So such a file has one writer.

// TwoWriters says that two jobs write a file in no order, and what to write
// instead. It says the same whichever is given first.
func TwoWriters(lfn, one, other string) string {
	return fmt.Sprintf("%s is an output of both %s and %s: let the names differ, as by a folder for each placeholder (writes: {a}/{b} in place of {a}.{b})",
		lfn, min(one, other), max(one, other))
}

// chosenBefore is another job that chose to write the file and was committed. What
// j was committed with itself it may write again.
func (f *file) chosenBefore(j *job) *job {
	if own := f.version(Version(j.id.Number())); own != nil && own.writer == j {
		return nil
	}
	for _, v := range f.versions {
		if v.writer != nil && v.committed() && v.writer.outputFor(f.lfn).Pattern {
			return v.writer
		}
	}
	return nil
}

// choseOthers reports whether a result holds a file that another job of this run
// chose to write. The job runs then, and is told so if that is still the case.
func (fs *files) choseOthers(j *job, outputs []output) bool {
	for i := range outputs {
		f := j.files().find(outputs[i].LFN)
		if outputs[i].Pattern != "" && f != nil && f.chosenBefore(j) != nil {
			return true
		}
	}
	return false
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

// discardForeign removes what an attempt of a run wrote that is known no more, unless
// that was committed there: then it may be a result that a later run takes.
func (fs *files) discardForeign(r *Result) {
	committed := make(map[string]bool)
	for _, stored := range fs.journal.results {
		for i := range stored.outputs {
			committed[stored.outputs[i].PFN] = true
		}
	}
	for i := range r.Outputs {
		w := &r.Outputs[i]
		if w.PFN != "" && !committed[w.PFN] && !fs.isStored(w) {
			fs.remove(w.PFN)
		}
	}
}

// isStored reports whether a version of some run is what was written there.
func (fs *files) isStored(w *WrittenFile) bool {
	return slices.ContainsFunc(fs.runs.inOrder, func(r *run) bool {
		f := r.files.find(w.LFN)
		return f != nil && slices.ContainsFunc(f.versions, func(v *version) bool { return v.pfn == w.PFN })
	})
}
