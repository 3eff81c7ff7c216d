package dispatch

import "slices"

// A pilot without room fetches the inputs of the jobs that it is expected to get next, so that
// they begin at once when there is room. The jobs stay ready: any pilot may be given them, but
// while there are others a pilot leaves to each what it fetches inputs for.

// expectNext finds out which ready jobs the pilot is expected to get next, at most as many as
// it has slots: of the highest priority the first by rank that lack input there and that no
// other pilot is expected to get. Those that it was expected to get before stay.
func (pl *placement) expectNext(p *pilot) {
	if p.info.CacheSize == 0 || !pl.fleet.takes(p) || !p.room.IsFull() || pl.jobs.ready == 0 {
		pl.expectNothing(p)
		return
	}
	for l := range pl.jobs.levels {
		for _, g := range l.groups {
			if len(p.seat.next) >= p.room.Slots() {
				return
			}
			if g.staging > 0 && !g.class.gang() && pl.fleet.fitsWhole(p, g.class) {
				pl.expectOf(g, p)
			}
		}
	}
}

// expectOf looks for such jobs in a group.
func (pl *placement) expectOf(g *group, p *pilot) {
	var passed []uint32
	for len(passed) < maxSkipped && len(p.seat.next) < p.room.Slots() {
		j := pl.jobs.first(g)
		if j == nil {
			break
		}
		if pl.expected[j] == nil && j.lacksStored(p) {
			pl.expected[j] = p
			p.seat.next = append(p.seat.next, j)
		}
		passed = append(passed, j.row)
		g.ranks.Pop()
	}
	for _, id := range passed {
		g.ranks.Push(id)
	}
}

// lacksStored reports whether the job reads a stored file that the pilot could fetch before.
func (j *job) lacksStored(p *pilot) bool {
	return slices.ContainsFunc(j.requests, func(r request) bool {
		return r.staged() && r.read.pfn != "" && !p.reaches(r.read)
	})
}

// expectNothing forgets what a pilot was expected to get.
func (pl *placement) expectNothing(p *pilot) {
	for _, j := range p.seat.next {
		delete(pl.expected, j)
		pl.fleet.assignArrivals(p, j, nil)
	}
	p.seat.next = p.seat.next[:0]
}

// expectNoMore is for a job that is not ready any more.
func (pl *placement) expectNoMore(j *job) {
	if p := pl.expected[j]; p != nil {
		delete(pl.expected, j)
		pl.fleet.assignArrivals(p, j, nil)
		p.seat.next = slices.DeleteFunc(p.seat.next, func(o *job) bool { return o == j })
	}
}
