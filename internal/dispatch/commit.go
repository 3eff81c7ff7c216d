package dispatch

import "slices"

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

// commitResult makes the outputs of an attempt visible, all at once.
func (c *Core) commitResult(by PilotID, p *pilot, j *job, r *Result) {
	if j.again {
		c.commitAgain(p, j, r)
		return
	}
	outputs := c.outputs[:0]
	for i := range r.Outputs {
		w := &r.Outputs[i]
		o := output{LFN: w.LFN, PFN: w.PFN, Size: w.Size, Records: w.Records, Adler32: w.Adler32}
		o.asWanted(j.outputFor(w.LFN))
		outputs = append(outputs, o)
	}
	c.outputs = outputs
	slices.SortFunc(outputs, j.inOrderOfWrites)
	j.committed = r.Attempt
	files := c.commit(j, outputs, p)
	c.event(Event{Kind: JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by, Result: r, Files: files})
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

// commit makes the job Done with these outputs, which are in the order of
// Writes. It is the only place where versions become visible.
func (c *Core) commit(j *job, outputs []output, p *pilot) []CommittedFile {
	versions := make([]*version, 0, 8) // on the stack for most jobs
	files := c.fileSlab.Take(len(outputs))
	for i := range outputs {
		o := &outputs[i]
		v := c.files.outputVersion(j, o)
		versions = append(versions, v)
		files[i] = CommittedFile{File: v.ref(), Pattern: o.Pattern, PFN: o.PFN, Size: o.Size, Records: o.Records}
		v.size, v.records, v.adler, v.pfn, v.tag = o.Size, o.Records, o.Adler32, o.PFN, o.tag(j.committed)
		v.identity = j.identityOf(o.LFN)
		c.makeVisible(j, v, p)
	}
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.file.pattern {
			v.state = present
		}
	}
	c.queue.setState(j, Done)
	c.files.leave(j)
	c.journal.persistCommit(j, outputs)
	for _, v := range versions {
		c.files.publish(j, v)
		c.files.superseded(v)
	}
	c.files.unpinAll(j)
	return files
}

func (fs *files) outputVersion(j *job, o *output) *version {
	if o.Pattern == "" {
		for i := range j.requests {
			if v := j.requests[i].write; v != nil && !v.file.pattern && v.file.lfn == o.LFN {
				return v
			}
		}
	}
	f := fs.named(o.LFN)
	f.matched = true
	v := f.versionFor(Version(j.id))
	v.writer = j
	fs.matched[j.id] = append(fs.matched[j.id], v)
	return v
}

// makeVisible is for a version whose copies are set but for the pilot that
// made it.
func (c *Core) makeVisible(j *job, v *version, p *pilot) {
	v.state = present
	c.claim(v, p)
	if v.pfn == "" {
		if p != nil && !p.left {
			c.files.hold(p, v, v.size)
		}
		if !v.hasCopy() {
			v.state = gone
			c.wantForWaiters(v)
			return
		}
	}
	c.files.arrived(v)
}

func (j *job) identityOf(lfn string) identity {
	if j.key != (identity{}) {
		return identityOf("output", string(j.key[:]), lfn)
	}
	return identityOf("attempt", attemptKey(j.committed), lfn)
}

func (j *job) pinInputs() {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			v.pins++
		}
	}
}

// unpinAll is for a job that will not read its inputs any more.
func (fs *files) unpinAll(j *job) {
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil {
			continue
		}
		if v.pins--; v.pins == 0 {
			v.ready, v.mostly = nil, [1]readyReader{}
			fs.tryRemove(v)
		}
	}
}
