package sim

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// fail notes the first breach of a promise, which ends the run.
func (r *run) fail(format string, args ...any) {
	if r.broken == nil {
		r.broken = fmt.Errorf("at %s: %s", r.now, fmt.Sprintf(format, args...))
	}
}

// checkThere makes sure that what a job was told to read exists.
func (r *run) checkThere(pfn string) {
	if e := r.elementOf(pfn); e == nil || !e.has(pfn) {
		r.fail("a job was told to read %s, which is not there", pfn)
	}
}

// checkLimit makes sure that a cache that has just taken a file is within its
// limit. One whose limit sinks may hold more for a while: what running jobs
// read does not go.
func (r *run) checkLimit(s *space) {
	if s.used > s.limit() {
		r.fail("a cache grew to %d bytes, beyond its limit of %d", s.used, s.limit())
	}
}

// checkShrunk makes sure that a cache whose limit has just sunk holds nothing
// that has to go and may.
func (r *run) checkShrunk(s *space) {
	if s.used <= s.limit() {
		return
	}
	for f := range s.order.Going() {
		if s.idle(f) {
			r.fail("a cache holds %d bytes, beyond its limit of %d, and keeps %s, which nothing reads", s.used, s.limit(), f.LFN)
			return
		}
	}
}

// checkHeld makes sure that a cache holds what it counts.
func (r *run) checkHeld(s *space) {
	var held int64
	for _, e := range s.files {
		held += e.size
	}
	if held != s.used {
		r.fail("a cache holds %d bytes and counts %d", held, s.used)
	}
}

// checkEnded makes sure of what must hold when all jobs have ended.
func (r *run) checkEnded() {
	if r.server == nil || r.server.core == nil {
		return
	}
	for j := range r.server.core.Jobs(theRun, 0) {
		r.checkOutputs(r.server.core, j.ID)
	}
	for _, p := range r.server.pilots {
		if p.space != nil {
			r.checkHeld(p.space)
		}
	}
}

// checkCommit makes sure that a job is committed from one attempt alone. Only
// one that makes again what was lost with the caches has another; again says
// that the TaskQueue told so, or may have told so unheard.
func (r *run) checkCommit(job taskqueue.JobID, name string, attempt taskqueue.AttemptID, again bool) {
	before, ok := r.committed[job]
	if ok && before != attempt && !(again && r.mayRunAgain(name)) {
		r.fail("job %s was committed from attempts %d and %d", name, before, attempt)
	}
	r.committed[job] = attempt
}

// mayRunAgain reports whether an output of the job may be in caches only, or was damaged.
func (r *run) mayRunAgain(name string) bool {
	i, ok := r.creator.byName(name)
	return ok && slices.ContainsFunc(r.work.jobs[i].job.Writes, func(o taskqueue.Output) bool {
		return o.Storage == taskqueue.StorageCache || r.damaged.files[o.LFN]
	})
}

// checkOutputs makes sure that what the TaskQueue believes to be stored is.
func (r *run) checkOutputs(core *dispatch.Core, job taskqueue.JobID) {
	detail, _ := core.Detail(job)
	for _, w := range detail.Writes {
		if !w.Available || w.PFN == "" || r.damaged.stored[w.PFN] != "" {
			continue
		}
		if size, ok := r.elementOf(w.PFN).files[w.PFN]; !ok || size != w.Size {
			r.fail("job %s is done, but %s with %d bytes is not stored", detail.Name, w.PFN, w.Size)
		}
	}
}
