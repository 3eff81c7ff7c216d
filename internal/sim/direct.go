package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fairway/internal/taskqueue"
)

// direct submits every job for itself through a broker to a batch system
// (paper 3, section V: noTQ, the way of gLite; at Tier0, of LSF). There is no
// TaskQueue and no pilot, so nothing of internal/dispatch takes part.
type direct struct {
	run    *run
	next   int // site
	tries  map[int]int
	rand   *rand.Rand
	places map[string]string // PFN by LFN
}

func (d *direct) begin() {
	d.run.creator = newCreator(d.run, func(jobs []taskqueue.Job) {
		for _, j := range jobs {
			d.submit(indexOf(j.Payload))
		}
	}, func([]taskqueue.ExistingFile) {})
	d.run.creator.begin()
}

// submit takes a job to a site, in turn.
func (d *direct) submit(i int) {
	s := d.run.sites[d.next%len(d.run.sites)]
	d.next++
	d.run.after(d.run.exp.Direct.Broker.Draw(d.rand), func() {
		_, ok := s.batch.submit(func(at *slot) { d.start(s, at, i) }, func(string) { d.submit(i) })
		if !ok {
			d.run.after(max(s.Batch.Poll, time.Second), func() { d.submit(i) })
		}
	})
}

func (d *direct) start(s *site, at *slot, i int) {
	r := d.run
	t := &r.work.jobs[i]
	d.tries[i]++
	began := r.now
	x := &execution{run: r, element: s.element, compute: time.Duration(float64(t.run) / s.Speed)}
	x.draw(t.job.Name, d.tries[i])
	for _, lfn := range t.job.Reads {
		size := r.work.sizes[lfn]
		x.reads = append(x.reads, input{pfn: d.written(lfn), size: size, sharers: t.sharers})
		r.misses++
		r.missBytes += size
	}
	for _, o := range t.job.Writes {
		for _, f := range r.work.writes(t, o) {
			pfn := fmt.Sprintf("%s:%s.%s.%d", s.element.name, f.lfn, t.job.Name, d.tries[i])
			x.writes = append(x.writes, output{FileRef: taskqueue.FileRef{LFN: f.lfn}, pfn: pfn, size: f.size})
		}
	}
	x.done = func(o taskqueue.Outcome, _ string) {
		r.stopped(x, began, o)
		s.batch.ended(at)
		r.after(r.exp.Direct.Notice.Draw(d.rand), func() { d.noticed(i, x, o) })
	}
	r.started()
	x.begin()
}

// written is the physical name under which a file was stored.
func (d *direct) written(lfn string) string {
	if pfn := d.places[lfn]; pfn != "" {
		return pfn
	}
	return d.run.pfnOf(lfn)
}

// noticed is when it becomes known that a job has ended; a failed one is
// submitted again.
func (d *direct) noticed(i int, x *execution, o taskqueue.Outcome) {
	r := d.run
	if o != taskqueue.Succeeded {
		if limit := r.exp.TaskQueue.Attempts; limit > 0 && d.tries[i] >= limit {
			r.endedFor(r.work.jobs[i].job.Name, taskqueue.JobFailed)
			return
		}
		r.after(r.exp.TaskQueue.Backoff, func() { d.submit(i) })
		return
	}
	e := taskqueue.Event{Name: r.work.jobs[i].job.Name}
	for _, out := range x.writes {
		d.places[out.LFN] = out.pfn
		e.Files = append(e.Files, taskqueue.CommittedFile{File: out.FileRef})
	}
	r.outputsOf(&e)
	r.endedFor(e.Name, taskqueue.JobCommitted)
}
