package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// Totals returns the totals of all jobs of all runs.
func (c *Core) Totals() taskqueue.Totals { return c.jobs.totals }

// Steps returns the totals of each step of a run, in the order of their first job.
func (c *Core) Steps(run taskqueue.RunID) []taskqueue.StepTotals {
	r := c.runs.byID[run]
	if r == nil {
		return nil
	}
	list := make([]taskqueue.StepTotals, len(r.stepOrder))
	for i, s := range r.stepOrder {
		list[i] = s.StepTotals
	}
	return list
}

// phase is how far an attempt has come, as far as its pilot has told.
func (a *attempt) phase() taskqueue.Phase {
	switch {
	case !a.started:
		return taskqueue.PhaseAssigned
	case a.gang == nil || a.gang.begins:
		return taskqueue.PhaseRunning
	case a.gang.where[a.task].Host != "":
		return taskqueue.PhaseReady
	}
	return taskqueue.PhaseStaging
}

// Jobs yields the jobs of a run with a number above after, in the order of submission.
// The Core must not be stepped meanwhile.
func (c *Core) Jobs(run taskqueue.RunID, after uint32) iter.Seq[taskqueue.JobView] {
	return func(yield func(taskqueue.JobView) bool) {
		r := c.runs.byID[run]
		if r == nil {
			return
		}
		for number := after + 1; number <= r.jobs; number++ {
			if !yield(c.view(c.jobs.table.At(r.row(number)))) {
				return
			}
		}
	}
}

// Job returns one job.
func (c *Core) Job(id taskqueue.JobID) (taskqueue.JobView, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return taskqueue.JobView{}, false
	}
	return c.view(j), true
}

// ReadySince is when a job became ready, last; zero if there is none, or it did not since the Core was
// made or loaded.
func (c *Core) ReadySince(id taskqueue.JobID) time.Time {
	j := c.jobs.find(id)
	if j == nil {
		return time.Time{}
	}
	return j.readySince.Time()
}

func (c *Core) view(j *job) taskqueue.JobView {
	v := taskqueue.JobView{
		ID: j.id, Name: j.name, Step: j.step.Step, State: j.state, Priority: int(j.ownPriority()),
		Effective: int(j.effective), Reused: j.wasTaken(),
		Submitted: j.text.submitted.Time(), Committed: j.committed,
	}
	if j.fate != nil && j.state != taskqueue.Done {
		v.Reason = j.fate.Reason
	}
	if j.state == taskqueue.Blocked {
		v.Reason = c.jobs.blockedBy(j)
	}
	for a := j.attempt; a != nil; a = a.next {
		v.Attempts = append(v.Attempts, taskqueue.AttemptView{Attempt: a.id, Pilot: a.pilot.id, GangPlace: a.place(),
			Phase: a.phase(), Silent: a.pilot.lease.silent.Time()})
	}
	if j.original.gang() {
		v.Tasks = j.original.tasks()
		slices.SortFunc(v.Attempts, func(a, b taskqueue.AttemptView) int { return cmp.Compare(a.Attempt, b.Attempt) })
	}
	return v
}

// Detail returns all that is known of a job.
func (c *Core) Detail(id taskqueue.JobID) (taskqueue.JobDetail, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return taskqueue.JobDetail{}, false
	}
	d := taskqueue.JobDetail{
		JobView: c.view(j), Payload: j.text.payload, Digest: j.text.digest, Needs: j.class.needs, Site: j.class.key.site,
		Writes: make([]taskqueue.FileView, len(j.outputs)),
	}
	if j.key != (identity{}) {
		d.Key = j.key.Hex()
	}
	d.Taken = c.journal.originOf(j)
	for i := range j.requests {
		r := &j.requests[i]
		if r.read != nil {
			f := r.read.view()
			f.Access = r.access
			d.Reads = append(d.Reads, f)
		}
		if r.write != nil {
			d.Writes[r.output] = r.write.view()
			d.Writes[r.output].Publish = j.outputs[r.output].Publish
		}
	}
	for _, v := range c.files.matched[j.id] {
		f := v.view()
		f.Publish = j.outputFor(v.file.lfn).Publish
		d.Writes = append(d.Writes, f)
	}
	return d, true
}

// InputsOf returns what a job reads, at less cost than Detail; false if there is no such job.
func (c *Core) InputsOf(id taskqueue.JobID) (in taskqueue.Inputs, ok bool) {
	j := c.jobs.find(id)
	if j == nil {
		return in, false
	}
	in.Submitted = j.text.submitted.Time()
	for v := range j.inputs {
		in.Files++
		in.Bytes += v.size
		in.Unsized = in.Unsized || v.size == 0
	}
	return in, true
}

func (v *version) view() taskqueue.FileView {
	f := taskqueue.FileView{
		File: v.ref(), Pattern: v.file.pattern, Size: v.size, Adler32: v.adler32(), Written: v.written(), PFN: v.pfn,
		Available: v.state == present, Published: v.number < v.file.publishFrom && !v.toPublish, Temporary: v.temporary(),
	}
	if v.writer != nil {
		f.Writer = v.writer.id
	}
	if f.Identity = v.identity; v.identity != (identity{}) {
		f.Mark = v.identity.Mark().Hex()
	}
	return f
}

// Written yields the files that jobs of a run write, each as its last version that a job
// writes. The Core must not be stepped meanwhile.
func (c *Core) Written(run taskqueue.RunID) iter.Seq[taskqueue.FileView] {
	return func(yield func(taskqueue.FileView) bool) {
		r := c.runs.byID[run]
		if r == nil {
			return
		}
		for f := range r.files.All {
			v := f.lastWritten()
			if v == nil {
				continue
			}
			view := v.view()
			view.Publish = v.isResult()
			if !yield(view) {
				return
			}
		}
	}
}

// Publishes reports whether the last version of a file that a job of a run writes is to
// stand under its plain name.
func (c *Core) Publishes(run taskqueue.RunID, lfn string) bool {
	r := c.runs.byID[run]
	if r == nil {
		return false
	}
	f := r.files.Find(lfn)
	if f == nil {
		return false
	}
	v := f.lastWritten()
	return v != nil && v.isResult()
}

// isResult reports whether a version that a job writes is to stand under its plain name.
func (v *version) isResult() bool {
	o := v.writer.outputFor(v.file.lfn)
	return o != nil && o.Publish
}

func (f *file) lastWritten() *version {
	for i := len(f.versions) - 1; i >= 0; i-- {
		if v := f.versions[i]; v.writer != nil {
			return v
		}
	}
	return nil
}

// Pilots returns the registered pilots, by name.
func (c *Core) Pilots() []taskqueue.PilotView {
	var list []taskqueue.PilotView
	for _, p := range c.fleet.inOrder() {
		v := taskqueue.PilotView{
			Pilot: p.id, Info: p.info, Cached: len(p.copies.versions), Parked: p.talk.heldSeq != 0,
			Silent: p.lease.silent.Time(),
		}
		if h := p.host.health; h != nil && c.fleet.nodes.IsDoubted(h) {
			v.Doubted = c.whyDoubted(h)
		}
		for _, a := range p.attempts {
			if a.started {
				v.Running++
			} else {
				v.Assigned++
			}
		}
		list = append(list, v)
	}
	return list
}

// Launches returns the submitted pilots, by name. After Load the caller steps
// a PilotEnded for those that the batch system no longer has.
func (c *Core) Launches() []taskqueue.LaunchView {
	var list []taskqueue.LaunchView
	for _, name := range sortedKeys(c.fleet.monitor.launches) {
		l := c.fleet.monitor.launches[name]
		list = append(list, taskqueue.LaunchView{Launch: l.name, Site: l.site.Name, Came: l.pilot != nil || l.expected})
	}
	return list
}
