package flow

import (
	"fmt"
	"slices"

	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// hold keeps a job back until the names of its inputs are known, and then has it made known.
func (f *Flow) hold(d *pendingJob) {
	d.state.held++
	for _, e := range d.readEntries() {
		lfn, _ := e.Pattern.Expand(d.values)
		d.reads = append(d.reads, lfn)
		f.need(d, e, lfn)
	}
	if !d.count {
		for _, e := range d.state.step.Rewrites {
			lfn, _ := e.Pattern.Expand(d.values)
			f.need(d, e, lfn)
		}
	}
	f.place(d)
}

// place has a job made known whose names are all known. If its place is, nothing that comes after it is
// decided before.
func (f *Flow) place(d *pendingJob) {
	switch {
	case d.unknown > 0:
	case d.aside > 0:
		if !d.placed {
			d.placed = true
			d.state.placed.add(d.wave)
		}
	default:
		if d.placed {
			d.state.placed.remove(d.wave)
			f.touch(d.state)
		}
		f.make(d)
	}
}

// readEntries are what the job reads besides the files that created it. A
// counting job has no place in the order of rewritten files.
func (d *pendingJob) readEntries() []workflow.Entry {
	if !d.count {
		return d.state.step.Reads
	}
	return slices.DeleteFunc(slices.Clone(d.state.step.Reads), func(e workflow.Entry) bool { return e.Shared || e.Hidden })
}

// need lets d wait until somebody makes lfn known. A rewritten file that only
// rewriters make needs no wait: its order decides.
func (f *Flow) need(d *pendingJob, e workflow.Entry, lfn string) {
	if len(e.Made) == 0 {
		return
	}
	n := f.name(lfn)
	switch {
	case n.file != nil:
		if !e.Aside {
			d.wave = max(d.wave, n.file.wave)
		}
		return
	case e.Aside:
		d.aside++
	default:
		d.unknown++
	}
	n.pending = append(n.pending, pendingName{d, e.Aside})
}

// create makes a pending job one that is known: its names become known to later steps,
// even if it must still wait for its turn.
func (f *Flow) create(d *pendingJob, at key) {
	st := d.state
	j := &job{key: at, state: st, values: d.values, count: d.count}
	if len(d.in) > 0 {
		j.in = d.in[0]
	}
	if st.step.Plain() && !st.created() {
		st.made, st.ended = st.made+1, max(st.ended, d.wave)
		f.touch(st)
	}
	if d.count {
		f.fillCount(j, d)
	} else {
		f.fill(j, d)
	}
	if why := f.otherInput(d); why != "" {
		f.refuse(st, "%s", why)
		return
	}
	if why := f.unfit(j); why != "" {
		f.refuse(st, "%s", why)
		return
	}
	f.enlist(j)
}

// fill writes down what dispatch and the pilot need to know of a job.
func (f *Flow) fill(j *job, d *pendingJob) {
	s := j.state.step
	c := &commandSource{w: f.w, step: s, values: d.values}
	for _, in := range d.in {
		c.in = append(c.in, in.lfn)
	}
	c.reads = d.reads
	if s.Plain() {
		c.in = namedReads(s, d.reads)
	}
	j.new.Job = f.describe(j)
	outputs := len(s.Writes) + len(s.Rewrites)
	c.writes = make([]string, 0, outputs)
	j.new.Job.Writes, j.outputs = make([]taskqueue.Output, 0, outputs), make([]*file, 0, len(s.Writes))
	for i, e := range s.Writes {
		lfn, open := e.Pattern.Expand(d.values)
		seen := lfn // by the command
		if open {
			seen = logical.Unescape(lfn)
		}
		c.writes = append(c.writes, seen)
		if e.Log {
			c.log = lfn
		}
		read := s.Found.Makers[i].Read || e.Shared && f.readsShared(s, e)
		j.new.Job.Writes = append(j.new.Job.Writes, taskqueue.Output{
			LFN: lfn, Pattern: open, Storage: s.Needs.Storage, Temporary: s.Needs.Temporary && read && !e.Log,
			Publish: publishes(s, read),
		})
		if open {
			j.chosen = true
			j.outputs = append(j.outputs, nil)
			continue
		}
		j.outputs = append(j.outputs, &file{lfn: lfn, values: d.values.Of(e.Pattern.Names), wave: j.wave, first: j.first})
	}
	for _, e := range s.Rewrites {
		lfn, _ := e.Pattern.Expand(d.values)
		c.writes = append(c.writes, lfn)
		read := f.readsShared(s, e)
		j.new.Job.Writes = append(j.new.Job.Writes, taskqueue.Output{
			LFN: lfn, Storage: s.Needs.Storage, Temporary: s.Needs.Temporary && read, Publish: publishes(s, read),
		})
	}
	j.new.Job.Reads = logical.Unique(append(slices.Clone(c.in), d.reads...))
	j.new.From = len(logical.Unique(slices.Clone(c.in)))
	f.fillAccess(j, c)
	j.source = c
}

// complete makes what only whoever runs the job needs. Of jobs that Load makes, which
// are not let out, nobody does.
func (j *job) complete() {
	if j.source == nil {
		return
	}
	j.new.Command = j.source.command(j.source.step.Runs.Command)
	j.source.step.Inside(&j.new.Command)
	j.new.Job.Digest = workflow.Digest(j.new)
	j.source = nil
}

// namedReads leaves out of what a job of the step reads what its command does not name.
func namedReads(s *workflow.Step, reads []string) []string { return reads[:len(reads)-s.HiddenReads()] }

func (f *Flow) describe(j *job) taskqueue.Job {
	s := j.state.step
	return taskqueue.Job{
		Name: j.name, Step: s.Name, Needs: s.Needs.Resources, Tools: s.Needs.Tools, Site: s.Needs.Site,
		Placement: f.w.Placement, Priority: f.w.RaisedBy + s.Needs.Priority, Retry: s.Needs.Retry, WaitForData: s.Needs.Wait,
		Checkpoint: s.Needs.Checkpoint,
		Tasks:      s.Needs.Tasks, Apart: s.Needs.Apart, Once: s.Needs.Once,
	}
}

func publishes(s *workflow.Step, read bool) bool {
	if s.Needs.Publish != nil {
		return *s.Needs.Publish
	}
	return !read && s.Needs.Storage != taskqueue.StorageCache
}

// readsShared reports whether another step reads a rewritten file.
func (f *Flow) readsShared(s *workflow.Step, e workflow.Entry) bool {
	return slices.ContainsFunc(f.shared, func(u workflow.Use) bool {
		return !u.Writes && u.Step != s && u.Entry.Pattern.Overlaps(e.Pattern)
	})
}

// otherInput says why a file that a job would read by its name is not meant,
// or "": it was made with other values.
func (f *Flow) otherInput(d *pendingJob) string {
	for i, e := range d.readEntries() {
		if n := f.names.Find(d.reads[i]); n != nil && n.file != nil {
			if why := e.Pattern.Disagree(d.values, n.file.values); why != "" {
				return fmt.Sprintf("job %s cannot read %s: %s; put text between the placeholders that no value contains, or a '/'",
					d.label, d.reads[i], why)
			}
		}
	}
	return ""
}

// unfit says why a job cannot be created: it has too many files, or its outputs cannot be told
// from those of another. Names that can be checked before are refused by Parse.
func (f *Flow) unfit(j *job) string {
	if why := j.new.Job.TooLarge(); why != "" {
		return fmt.Sprintf("job %s cannot be created: %s", j.name, why)
	}
	for _, o := range j.new.Job.Writes {
		if other, ok := f.patterns[o.LFN]; ok && o.Pattern {
			return taskqueue.TwoWriters(o.LFN, other, "job "+j.name)
		}
	}
	for _, o := range j.new.Job.Writes {
		if why := f.inTheWay(o.LFN); why != "" && !o.Pattern {
			return fmt.Sprintf("job %s cannot be created: %s", j.name, why)
		}
	}
	for _, made := range j.outputs {
		if made == nil {
			continue
		}
		if n := f.names.Find(made.lfn); n != nil && n.file != nil {
			return taskqueue.TwoWriters(made.lfn, n.maker, "job "+j.name)
		}
		if why := logical.WhyNot(made.lfn); why != "" {
			return fmt.Sprintf("job %s cannot be created: the name %q of its output %s", j.name, made.lfn, why)
		}
		if part := logical.LongPart(made.lfn); part != "" {
			return fmt.Sprintf("job %s cannot be created: a part of the name %q of its output has %d bytes, the limit is %d",
				j.name, made.lfn, len(part), logical.MaxPart)
		}
	}
	return ""
}

// enlist lets a job wait for its turn and makes its outputs known.
func (f *Flow) enlist(j *job) {
	if !j.count {
		j.state.ran++
	}
	if j.chosen {
		j.state.open.add(j.wave)
	}
	for _, o := range j.new.Job.Writes {
		if o.Pattern {
			f.patterns[o.LFN] = "job " + j.name
		} else if n := f.name(o.LFN); !n.written {
			n.written = true
			f.occupy(o.LFN)
		}
	}
	if j.chosen || j.count {
		f.followed[j.name] = j
	}
	for _, lfn := range j.new.Job.Reads {
		if n := f.name(lfn); n.file != nil && !n.available {
			n.readers = append(n.readers, j)
			j.unavailable++
		}
	}
	f.enqueue(j)
	for i, made := range j.outputs {
		if made != nil {
			f.output(j, i, made)
		}
	}
	for _, u := range j.shared {
		f.advance(u.queue)
	}
	f.trySubmit(j)
}

// output makes one output known to later steps. Those who want to be told
// when it exists have said so when deliver returns.
func (f *Flow) output(j *job, i int, made *file) {
	if w := &j.new.Job.Writes[i]; w.Temporary && !j.state.step.Writes[i].Shared {
		f.awaitReaders(j.state.step.Found.Makers[i], made, awaitedReader{j.state, 1})
	}
	f.know(made, "job "+j.name)
	if i < len(j.state.step.Found.Makers) {
		f.deliver(j.state.step.Found.Makers[i], made)
	}
	if len(made.takers) > 0 {
		f.followed[j.name] = j
	}
}

// trySubmit submits a job when nothing keeps it any more.
func (f *Flow) trySubmit(j *job) {
	if j.submitted || j.unavailable > 0 || j.gates > 0 {
		return
	}
	j.submitted = true
	f.ready.Push(readyJob{j})
}

// readyJob is a job among those that nothing keeps.
type readyJob struct{ *job }

// Before is the canonical order.
func (j readyJob) Before(other readyJob) bool { return j.key.compare(other.key) < 0 }

// makeAvailable tells readers that the writer of a file was submitted.
func (f *Flow) makeAvailable(lfn string) {
	n := f.name(lfn)
	n.available = true
	readers := n.readers
	n.readers = nil
	for _, j := range readers {
		j.unavailable--
		f.trySubmit(j)
	}
}

// letOutNext lets the first ready job out, which may make others ready. So they go in canonical order, but none
// before the writers of what it reads.
func (f *Flow) letOutNext() {
	j := f.ready.Pop().job
	f.letOut++
	if j.state.held--; j.state.held == 0 {
		f.candidates = append(f.candidates, j.state)
	}
	f.usedBy(j)
	if !f.replaying {
		j.complete()
		f.effects.Submit = append(f.effects.Submit, j.new)
	}
	for _, made := range j.outputs {
		if made != nil {
			f.makeAvailable(made.lfn)
		}
	}
	f.passed(j)
	j.new = workflow.NewJob{}
}
