package sim

import (
	"time"

	"fairway/internal/taskqueue"
)

// prefetch has files brought into the cache for jobs that wait at the pilot, as many at a
// time as the experiment says. The TaskQueue names the rest again.
func (p *pilot) prefetch(files []taskqueue.InputFile) {
	for _, in := range files {
		if p.fetching == p.run.exp.Cache.Prefetch {
			return
		}
		if _, ok := p.space.holds(in.File); !ok && !p.space.isFetched(in.File) {
			p.fetch(in)
		}
	}
}

// fetch reads a file from storage, as a job would. If that fails the job reads it.
func (p *pilot) fetch(in taskqueue.InputFile) {
	r, from, n := p.run, p.run.elementOf(in.PFN), p.run.exp.Workflow.Accesses
	if r.broken != nil {
		return
	}
	p.fetching++
	p.space.fetched[in.File] = nil
	random := Stream(r.seed, "prefetching", named(in.File.LFN), uint64(r.now))
	fails, at := random.Float64() < float64(from.FailureRate), random.IntN(n)
	accesses, size := n, in.Size
	if fails {
		accesses, size = at+1, 0
	}
	var delay time.Duration
	for range accesses {
		delay += from.delay(random, r.exp.Workflow.Run.Mean, n)
	}
	r.after(delay, func() {
		from.line.send(size, func() {
			p.fetching--
			from.read += size
			if !fails && !p.dead {
				p.space.insert(p, in.File, in.Size, from.costOf(in.Size))
				p.reportSoon()
			}
			waiting := p.space.fetched[in.File]
			delete(p.space.fetched, in.File)
			for _, then := range waiting {
				then()
			}
		})
	})
}

// isFetched reports whether somebody fetches a file ahead.
func (s *space) isFetched(f taskqueue.FileRef) bool {
	_, ok := s.fetched[f]
	return ok
}
