package sim

import (
	"time"

	"fairway/internal/taskqueue"
)

// sweepAfter is how long after the death of a pilot its strays are removed from
// a storage element of limited capacity. Until then every message of the pilot
// has arrived or is lost.
const sweepAfter = time.Hour

// leaveStrays plans the removal of what a dead pilot stored and the TaskQueue
// may never hear of, as those who run a storage element do it: without that the
// element would stay full for ever.
func (p *pilot) leaveStrays() {
	if p.site.element.Capacity == 0 {
		return
	}
	for _, e := range p.ended {
		for _, w := range e.Outputs {
			p.run.sweepLater(e.Job, w.PFN)
		}
	}
	for _, a := range p.running {
		for _, out := range a.work.writes[:a.work.wrote] {
			p.run.sweepLater(a.Job, out.pfn)
		}
	}
}

func (r *run) sweepLater(job taskqueue.JobID, pfn string) {
	if pfn != "" {
		r.after(sweepAfter, func() { r.sweep(job, pfn) })
	}
}

// sweep removes a file that its job does not name as its output.
func (r *run) sweep(job taskqueue.JobID, pfn string) {
	if r.server.core == nil || r.outages.server > r.now { // it may hear of it yet
		r.sweepLater(job, pfn)
		return
	}
	detail, _ := r.server.core.Detail(job)
	for _, w := range detail.Writes {
		if w.PFN == pfn {
			return
		}
	}
	r.elementOf(pfn).remove(pfn)
}
