package sim

import (
	"time"

	"fairway/internal/taskqueue"
)

// measured is what a run observes of itself.
type measured struct {
	submitted time.Duration // when the first job was
	ended     time.Duration // when the last one was known to have ended
	ends      map[string]taskqueue.EventKind
	committed map[taskqueue.JobID]taskqueue.AttemptID
	done      int // jobs that have ended for good

	firstStart time.Duration
	active     int // attempts that run
	idleSince  time.Duration
	gap        time.Duration // without any running job, between the first start and the last end
	timeline   []Sample      // of running jobs

	attemptsMade
	stageIn, jobTime    time.Duration
	hits, misses        int
	hitBytes, missBytes int64
	pilots              int
	wide                int64 // bytes read over the network between sites
	accesses            []Access
	tries               []RecordedAttempt // of a replay
}

// attemptsMade are how many attempts there were, and how many of them in vain.
type attemptsMade struct {
	attempts, failures, lost int
	reading, writing         int           // of the failures: at a storage element
	wasted                   time.Duration // of attempts that did not succeed
}

// Sample is the number of running jobs from an instant on.
type Sample struct {
	At      time.Duration
	Running int
}

func (m *measured) begin(jobs int) {
	m.ends = make(map[string]taskqueue.EventKind, jobs)
	m.committed = map[taskqueue.JobID]taskqueue.AttemptID{}
	m.firstStart = -1
}

// started notes the start of an attempt.
func (r *run) started() {
	if r.firstStart < 0 {
		r.firstStart = r.now
	} else if r.active == 0 {
		r.gap += r.now - r.idleSince
	}
	r.attempts++
	r.active++
	r.sample()
}

func (r *run) sample() {
	if !r.exp.Timeline {
		return
	}
	if n := len(r.timeline); n > 0 && r.timeline[n-1].At == r.now {
		r.timeline[n-1].Running = r.active
		return
	}
	r.timeline = append(r.timeline, Sample{r.now, r.active})
}

// stopped notes the end of an execution that began at an instant.
func (r *run) stopped(x *execution, began time.Duration, o taskqueue.Outcome) {
	r.active--
	r.idleSince = r.now
	r.stageIn += x.stageIn
	r.jobTime += r.now - began
	if o != taskqueue.Succeeded {
		r.wasted += r.now - began
	}
	if o != taskqueue.Succeeded && o != taskqueue.Ended {
		r.failures++
	}
	switch o {
	case taskqueue.Lost:
		r.lost++
	case taskqueue.StageInFailed:
		r.reading++
	case taskqueue.StageOutFailed:
		r.writing++
	}
	r.sample()
}

func (r *run) attemptEnded(a *attempt, o taskqueue.Outcome) {
	r.stopped(a.work, a.began, o)
	if o == taskqueue.Ended && !a.begun() {
		return // a pilot does not tell what it has read for it
	}
	r.hits += a.usage.CacheHits
	r.misses += a.usage.CacheMisses
	r.hitBytes += a.usage.BytesCached
	r.missBytes += a.usage.BytesStaged
}

// used records an access, where the experiment wants it.
func (r *run) used(f taskqueue.FileRef, size int64, write bool) {
	if r.exp.Accesses {
		r.accesses = append(r.accesses, Access{f, size, write})
	}
}

// event follows what becomes of the jobs, and checks that none is committed
// from two attempts. After a crash the TaskQueue may tell of a commit again.
func (r *run) event(e *taskqueue.Event) {
	if run := e.Job.Run(); run != 0 && run != theRun {
		r.rivalEvent(e)
		return
	}
	switch e.Kind {
	case taskqueue.JobCommitted:
		if e.Result != nil {
			r.checkCommit(e.Job, e.Name, e.Result.Attempt, false)
		}
		r.outputsOf(e)
		r.endedFor(e.Name, e.Kind)
	case taskqueue.JobFailed, taskqueue.JobBlocked, taskqueue.JobCancelled:
		r.endedFor(e.Name, e.Kind)
	case taskqueue.JobRegenerated:
		if e.Result != nil {
			r.checkCommit(e.Job, e.Name, e.Result.Attempt, true)
		}
	case taskqueue.JobUnblocked, taskqueue.JobReady:
		r.revived(e.Name)
	}
}

// revived notes that a job that had failed may run after all.
func (r *run) revived(name string) {
	if how, ok := r.ends[name]; ok && how != taskqueue.JobCommitted {
		delete(r.ends, name)
		r.done--
	}
}

func (r *run) endedFor(name string, how taskqueue.EventKind) {
	if _, ok := r.ends[name]; ok {
		r.ends[name] = how
		return
	}
	r.ends[name] = how
	r.ended = r.now
	r.done++
	r.checkEnd()
}

// outputsOf tells of the outputs that a commit made visible.
func (r *run) outputsOf(e *taskqueue.Event) {
	for _, f := range e.Files {
		r.creator.visible(f.File.LFN)
	}
	if rules := r.work.rules; rules != nil {
		if i, ok := r.creator.byName(e.Name); ok {
			rules.committed(&r.work.jobs[i])
		}
	}
}

// checkEnd notes that all jobs have ended and no more will come.
func (r *run) checkEnd() {
	rules := r.work.rules
	if r.done < len(r.work.jobs) || len(r.rivals.ended) < len(r.rivals.jobs) || rules != nil && !rules.rests() {
		return
	}
	r.finished = true
	if rules != nil && !rules.finished && r.succeeded() == r.done {
		r.fail("%v", rules.left())
	}
}

// succeeded counts the jobs whose outputs are there.
func (r *run) succeeded() int {
	good := 0
	for _, how := range r.ends {
		if how == taskqueue.JobCommitted {
			good++
		}
	}
	return good
}

// Metrics are the names of what a run measures, with their units.
var Metrics = []string{
	"turnaround_s", "first_start_s", "gap_s", "stage_in_s", "job_time_s", "hit_ratio", "byte_hit_ratio",
	"read_gb", "written_gb", "attempts", "failed_attempts", "failed_reading", "failed_writing", "lost_attempts",
	"wasted_s", "pilots", "jobs_done", "jobs_failed", "events", "wide_gb", "money",
}

// metrics returns the values in the order of Metrics. Stage-in and job time
// are those of a job, over all of its attempts.
func (r *run) metrics() []float64 {
	jobs := float64(max(len(r.work.jobs), 1))
	var read, written int64
	for _, s := range r.exp.Storage {
		read += r.elements[s.Name].read
		written += r.elements[s.Name].wrote
	}
	good := r.succeeded()
	return []float64{
		(r.ended - r.submitted).Seconds(), (r.firstStart - r.submitted).Seconds(), r.gap.Seconds(),
		r.stageIn.Seconds() / jobs, r.jobTime.Seconds() / jobs,
		ratio(float64(r.hits), float64(r.hits+r.misses)), ratio(float64(r.hitBytes), float64(r.hitBytes+r.missBytes)),
		float64(read) / 1e9, float64(written) / 1e9, float64(r.attempts), float64(r.failures),
		float64(r.reading), float64(r.writing), float64(r.lost),
		r.wasted.Seconds(), float64(r.pilots), float64(good), float64(len(r.ends) - good), float64(r.happened),
		float64(r.wide) / 1e9, r.money(),
	}
}

// money is the price of all slots for as long as something occupied them.
func (r *run) money() float64 {
	sum := 0.0
	for _, s := range r.sites {
		s.batch.charge(0)
		sum += s.Price * s.batch.used.Hours()
	}
	return sum
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// Access is one use of a file in a recorded sequence: a job read it, or has
// written it.
type Access struct {
	File  taskqueue.FileRef
	Size  int64
	Write bool
}
