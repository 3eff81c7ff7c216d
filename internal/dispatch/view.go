package dispatch

import (
	"cmp"
	"encoding/hex"
	"iter"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// Totals returns the totals of all jobs of all runs.
func (c *Core) Totals() Totals { return c.jobs.totals }

// Steps returns the totals of each step of a run, in the order of their first job.
func (c *Core) Steps(run taskqueue.RunID) []StepTotals {
	r := c.runs.byID[run]
	if r == nil {
		return nil
	}
	list := make([]StepTotals, len(r.stepOrder))
	for i, s := range r.stepOrder {
		list[i] = s.StepTotals
	}
	return list
}

// JobView is what there is to say of a job.
type JobView struct {
	ID        JobID
	Name      string
	Step      string
	State     State
	Priority  int // its own: as submitted, or as a person has given it since
	Effective int // inherited from jobs that wait for it
	Reason    string
	Reused    bool
	Submitted time.Time
	Tasks     int           // of a gang; 0: it is none
	Attempts  []AttemptView // that have not ended; of a gang by task
	Committed AttemptID     // 0 if none
}

// AttemptView is an attempt that has not ended, or one task of one.
type AttemptView struct {
	Attempt AttemptID
	Pilot   PilotID
	GangPlace
	Phase Phase
	// Silent is since when its pilot is not heard of; zero: it is.
	Silent time.Time
}

// Phase is how far an attempt has come at its pilot.
type Phase int

// A pilot is given an attempt, starts it, and tells of a task of a gang when it has its inputs and
// ports. The command of any other attempt begins without that: it runs from its start.
const (
	PhaseAssigned Phase = iota // the pilot has not started it
	PhaseStaging               // of a gang: it gets its inputs and ports
	PhaseReady                 // of a gang: it waits for other tasks
	PhaseRunning
)

func (p Phase) String() string { return [...]string{"assigned", "staging", "ready", "running"}[p] }

// phase is how far an attempt has come, as far as its pilot has told.
func (a *attempt) phase() Phase {
	switch {
	case !a.started:
		return PhaseAssigned
	case a.gang == nil || a.gang.begins:
		return PhaseRunning
	case a.gang.where[a.task].Host != "":
		return PhaseReady
	}
	return PhaseStaging
}

// Jobs yields the jobs of a run with a number above after, in the order of submission.
// The Core must not be stepped meanwhile.
func (c *Core) Jobs(run taskqueue.RunID, after uint32) iter.Seq[JobView] {
	return func(yield func(JobView) bool) {
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
func (c *Core) Job(id JobID) (JobView, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return JobView{}, false
	}
	return c.view(j), true
}

// ReadySince is when a job became ready, last; zero if there is none, or it did not since the Core was
// made or loaded.
func (c *Core) ReadySince(id JobID) time.Time {
	j := c.jobs.find(id)
	if j == nil {
		return time.Time{}
	}
	return j.readySince.Time()
}

func (c *Core) view(j *job) JobView {
	v := JobView{
		ID: j.id, Name: j.name, Step: j.step.Step, State: j.state, Priority: int(j.own()),
		Effective: int(j.effective), Reused: j.wasTaken(),
		Submitted: j.text.submitted.Time(), Committed: j.committed,
	}
	if j.fate != nil && j.state != Done {
		v.Reason = j.fate.Reason
	}
	if j.state == Blocked {
		v.Reason = c.jobs.blockedBy(j)
	}
	for a := j.attempt; a != nil; a = a.next {
		v.Attempts = append(v.Attempts, AttemptView{a.id, a.pilot.id, a.place(), a.phase(), a.pilot.lease.silent.Time()})
	}
	if j.original.gang() {
		v.Tasks = j.original.tasks()
		slices.SortFunc(v.Attempts, func(a, b AttemptView) int { return cmp.Compare(a.Attempt, b.Attempt) })
	}
	return v
}

// FileView is a version of a file, as a job reads or writes it.
type FileView struct {
	File      FileRef
	Pattern   bool
	Size      int64
	Adler32   uint32 // 0 where it is not known
	Written   uint32 // that of [WrittenFile], of an output without sums
	PFN       string
	Available bool
	Access    Access // how the job reads it
	Publish   bool   // the job that writes it wants it to be published
	Published bool   // it was, or a later version was
	Temporary bool   // it goes when all jobs that read it are done, of which there are some
	Writer    JobID  // 0 if it existed before
	// Mark tells contents apart, for a person; empty while they are not known.
	Mark string
	// Identity is what keys of results know the contents by; zero while they are not known.
	Identity [16]byte
}

// JobDetail is all that is known of a job.
type JobDetail struct {
	JobView
	Payload []byte
	Digest  string    // as it was submitted
	Needs   Resources // memory grown by retries
	Site    string
	Reads   []FileView
	Writes  []FileView // what patterns have matched follows the patterns
	// Key is that of the job's result; empty before the job has come to its turn.
	Key string
	// Taken says who made the result that the job has taken; nil if it has taken none, or that is
	// not known.
	Taken *Origin
}

// Detail returns all that is known of a job.
func (c *Core) Detail(id JobID) (JobDetail, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return JobDetail{}, false
	}
	d := JobDetail{
		JobView: c.view(j), Payload: j.text.payload, Digest: j.text.digest, Needs: j.class.needs, Site: j.class.key.site,
		Writes: make([]FileView, len(j.outputs)),
	}
	if j.key != (identity{}) {
		d.Key = j.key.hex()
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

// Inputs are what the attempts of a job have to read, as far as it is known, and since when.
type Inputs struct {
	Files     int
	Bytes     int64
	Unsized   bool // the size of one is not known before it is read
	Submitted time.Time
}

// InputsOf returns what a job reads, at less cost than Detail; false if there is no such job.
func (c *Core) InputsOf(id JobID) (in Inputs, ok bool) {
	j := c.jobs.find(id)
	if j == nil {
		return in, false
	}
	in.Submitted = j.text.submitted.Time()
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			in.Files++
			in.Bytes += v.size
			in.Unsized = in.Unsized || v.size == 0
		}
	}
	return in, true
}

func (v *version) view() FileView {
	f := FileView{
		File: v.ref(), Pattern: v.file.pattern, Size: v.size, Adler32: v.adler32(), Written: v.written(), PFN: v.pfn,
		Available: v.state == present, Published: v.number < v.file.publishFrom && !v.toPublish, Temporary: v.temporary(),
	}
	if v.writer != nil {
		f.Writer = v.writer.id
	}
	if f.Identity = v.identity; v.identity != (identity{}) {
		f.Mark = hex.EncodeToString(v.mark())
	}
	return f
}

// Written yields the files that jobs of a run write, each as its last version that a job
// writes. The Core must not be stepped meanwhile.
func (c *Core) Written(run taskqueue.RunID) iter.Seq[FileView] {
	return func(yield func(FileView) bool) {
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

// PilotView is what there is to say of a registered pilot.
type PilotView struct {
	Pilot    PilotID
	Info     PilotInfo
	Running  int
	Assigned int // besides those that run
	Cached   int // files
	Parked   bool
	Silent   time.Time // when it was to be heard, and was not; zero: it is heard
	// Doubted says why its node gets no jobs that can run elsewhere, or few; empty: it does.
	Doubted string
}

// Pilots returns the registered pilots, by name.
func (c *Core) Pilots() []PilotView {
	var list []PilotView
	for _, p := range c.fleet.inOrder() {
		v := PilotView{
			Pilot: p.id, Info: p.info, Cached: len(p.copies.versions), Parked: p.talk.held != 0, Silent: p.lease.silent.Time(),
		}
		if h := p.host.health; h != nil && c.fleet.isDoubted(h) {
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

// LaunchView is a pilot that a batch system has, as far as is known.
type LaunchView struct {
	Launch string
	Site   string
	Came   bool // a pilot of it has registered, perhaps before a restart
}

// Launches returns the submitted pilots, by name. After Load the caller steps
// a PilotEnded for those that the batch system no longer has.
func (c *Core) Launches() []LaunchView {
	var list []LaunchView
	for _, name := range sortedKeys(c.fleet.monitor.launches) {
		l := c.fleet.monitor.launches[name]
		list = append(list, LaunchView{Launch: l.name, Site: l.site.Name, Came: l.pilot != nil || l.expected})
	}
	return list
}
