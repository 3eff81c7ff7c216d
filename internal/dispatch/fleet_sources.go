package dispatch

import (
	"slices"

	"fairway/internal/taskqueue"
)

// Limits of what pilots get from each other's caches.
const (
	// maxChain is how many pilots may stand between a file that comes in and the
	// storage element, each passing on what it gets, before a source gets several
	// readers: what breaks in the middle is felt by all that come after it.
	maxChain = 32
	// maxSourceReaders is how many pilots read one file from one source at a time.
	maxSourceReaders = 4
	// maxServed is how many files one source serves at a time.
	maxServed = 16
	// maxCandidates bounds the holders of a file that are looked at for a source.
	maxCandidates = 64
	// maxCut is how many hosts may find a pilot out of reach before it is offered to
	// nobody, and how many pilots a host may before it is offered none.
	maxCut = 2
)

// sources says which pilot each file that comes into a cache comes from, of those
// pilots that serve what they have (PilotInfo.Address). Without such pilots it is
// empty, and costs nothing.
//
// A file that several pilots want goes from one to the next while it still comes
// in: one reads it from storage, and each of the others from one that holds it or
// is about to, with as few readers as can be. Invariants:
//   - An arrival is in the list of its version and in that of its pilot, or in
//     neither. A host has at most one for a version, and none for one that it holds.
//   - An arrival is in sending of the pilot that it comes from, and of no other.
type sources struct {
	arriving map[*version][]*arrival
}

// arrival is a file on its way into a pilot's cache, from the answer that names it until its
// copy is there, or its attempt or its pilot has ended.
type arrival struct {
	to, from *pilot // from is nil where it comes from storage
	version  *version
	attempt  *attempt   // for which it comes, first; nil: for next
	next     *job       // that its pilot is expected to get
	depth    int        // how many pilots it passes before
	told     []toldHash // by others, while this was the origin and no hash was known
}

// setSource has the arrival come from a pilot, or, with nil, from storage.
func (x *arrival) setSource(q *pilot, depth int) {
	if x.from != nil {
		i := slices.Index(x.from.exchange.sending, x)
		x.from.exchange.sending = slices.Delete(x.from.exchange.sending, i, i+1)
	}
	if x.from, x.depth = q, depth; q != nil {
		q.exchange.sending = append(q.exchange.sending, x)
	}
}

// arrivalOf is the arrival by which a version comes to the pilot, nil if it does not.
func (p *pilot) arrivalOf(v *version) *arrival {
	for _, x := range p.exchange.arriving {
		if x.version == v {
			return x
		}
	}
	return nil
}

// readers is how many pilots get a version from this one.
func (p *pilot) readers(v *version) (n int) {
	for _, x := range p.exchange.sending {
		if x.version == v {
			n++
		}
	}
	return n
}

// sourceFor is where the pilot is to get a version that it needs for an attempt; nil
// for the storage element, or what its host has already.
func (fl *fleet) sourceFor(p *pilot, v *version, a *attempt) *taskqueue.Source {
	if p.info.Address == "" || p.reaches(v) {
		return nil
	}
	s := &fl.sources
	mine := p.arrivalOf(v)
	for _, q := range p.host.pilots {
		if q != p && q.info.CacheDir != "" && p.info.CacheDir != "" && q.arrivalOf(v) != nil {
			return nil // it comes to this host
		}
	}
	provable := fl.files.hashes[v] != "" || fl.origin(v) != nil
	if mine != nil && (mine.from == nil || provable && fl.mayServe(v, mine.from, p)) {
		return fl.describeSource(mine)
	}
	if mine != nil {
		s.remove(mine)
	}
	x := &arrival{to: p, version: v, attempt: a}
	if from, depth := fl.bestSource(p, v); from != nil {
		x.setSource(from, depth+1)
	}
	s.arriving[v] = append(s.arriving[v], x)
	p.exchange.arriving = append(p.exchange.arriving, x)
	return fl.describeSource(x)
}

// sourceAhead is sourceFor a version that the pilot fetches for a ready job that it is expected
// to get.
func (fl *fleet) sourceAhead(p *pilot, v *version, j *job) *taskqueue.Source {
	s := fl.sourceFor(p, v, nil)
	if x := p.arrivalOf(v); x != nil && x.attempt == nil && x.next == nil {
		x.next = j
	}
	return s
}

// assignArrivals has the arrivals for a ready job of the pilot be for an attempt of it; with nil they
// end, since it is not expected to get the job any more.
func (fl *fleet) assignArrivals(p *pilot, j *job, a *attempt) {
	for i := len(p.exchange.arriving) - 1; i >= 0; i-- {
		if x := p.exchange.arriving[i]; x.next == j {
			if x.next, x.attempt = nil, a; a == nil {
				fl.endArrival(x)
			}
		}
	}
}

// bestSource is the pilot from which another is to get a version: one at its own site
// before others, then one with few readers, then one to which it does not come
// through many. Nil: there is none, or nobody could tell whether what comes is right.
func (fl *fleet) bestSource(p *pilot, v *version) (best *pilot, depth int) {
	s := &fl.sources
	known := fl.files.hashes[v] != ""
	if !known && fl.origin(v) == nil || len(p.host.cut) >= maxCut {
		return nil, 0
	}
	least := uint64(0)
	consider := func(q *pilot, at int) {
		readers := q.readers(v)
		if q == p || readers >= maxSourceReaders || len(q.exchange.sending) >= maxServed || !fl.mayServe(v, q, p) {
			return
		}
		cost := uint64(readers)<<32 | uint64(at)<<16 | uint64(len(q.exchange.sending))
		if at >= maxChain {
			cost += maxSourceReaders << 32
		}
		if q.info.Site != p.info.Site {
			cost |= 1 << 63
		}
		if best == nil || cost < least {
			best, depth, least = q, at, cost
		}
	}
	if known {
		for _, q := range v.holders[:min(len(v.holders), maxCandidates)] {
			consider(q, 0)
		}
	}
	for _, x := range s.arriving[v] {
		if len(p.exchange.sending) == 0 || !p.behind(x) {
			consider(x.to, x.depth+1)
		}
	}
	return best, depth
}

// behind reports whether an arrival comes, over however many pilots, from this one.
func (p *pilot) behind(x *arrival) bool {
	for range maxChain * maxSourceReaders {
		switch {
		case x == nil || x.from == nil:
			return false
		case x.from == p:
			return true
		}
		x = x.from.arrivalOf(x.version)
	}
	return true
}

// passedOn reports whether the pilot could get a version that it does not have from one
// that has it now; near: from one of its own site.
func (fl *fleet) passedOn(v *version, p *pilot, near bool) bool {
	return p.info.Address != "" && fl.files.hashes[v] != "" &&
		slices.ContainsFunc(v.holders[:min(len(v.holders), maxPlaces)], func(q *pilot) bool {
			return (!near || q.info.Site == p.info.Site) && fl.mayServe(v, q, p)
		})
}

// mayServe reports whether a pilot may read a version from another, and is not known to be
// unable to.
func (fl *fleet) mayServe(v *version, q, p *pilot) bool {
	return !q.left && !q.copies.cached[v].other && q.info.Address != "" && len(q.exchange.cutFrom) < maxCut &&
		!slices.Contains(q.exchange.cutFrom, p.host.name) &&
		(q.info.Site == p.info.Site || fl.mayExchange(q.info.Site, p.info.Site))
}

// mayExchange reports whether two sites exchange cached files: each names the other.
func (fl *fleet) mayExchange(a, b string) bool {
	x, y := fl.monitor.site(a), fl.monitor.site(b)
	return x != nil && y != nil && slices.Contains(x.CacheWith, b) && slices.Contains(y.CacheWith, a)
}

func (fl *fleet) describeSource(x *arrival) *taskqueue.Source {
	if x.from == nil {
		return nil
	}
	s := &taskqueue.Source{Pilot: x.from.id, Address: x.from.info.Address, Pin: x.from.info.Pin}
	if fl.files.hashes[x.version] == "" {
		if o := fl.origin(x.version); o != nil {
			s.Origin = &taskqueue.Source{Pilot: o.to.id, Address: o.to.info.Address, Pin: o.to.info.Pin}
		}
	}
	return s
}

// endArrival ends an arrival. What others have told while it was the origin counts now, if it
// has brought no hash.
func (fl *fleet) endArrival(x *arrival) {
	fl.sources.remove(x)
	for _, t := range x.told {
		if fl.files.hashes[x.version] == "" && t.by.holds(x.version) {
			fl.hashTold(t.by, x.version, t.hash)
		}
	}
}

// arrivalsEnd ends the arrivals of a pilot that is gone. Those that come from it end with
// their attempts, or come from elsewhere.
func (fl *fleet) arrivalsEnd(p *pilot) {
	for len(p.exchange.arriving) > 0 {
		fl.endArrival(p.exchange.arriving[len(p.exchange.arriving)-1])
	}
}

// retire forgets the versions of a run.
func (s *sources) retire(r taskqueue.RunID) {
	for v, list := range s.arriving {
		if v.run == r {
			for _, x := range slices.Clone(list) {
				s.remove(x)
			}
		}
	}
}

func (s *sources) remove(x *arrival) {
	list := s.arriving[x.version]
	if i := slices.Index(list, x); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if s.arriving[x.version] = list; len(list) == 0 {
		delete(s.arriving, x.version)
	}
	if i := slices.Index(x.to.exchange.arriving, x); i >= 0 {
		x.to.exchange.arriving = slices.Delete(x.to.exchange.arriving, i, i+1)
	}
	x.setSource(nil, 0)
}

// unserved takes note that a pilot got nothing from another: that one is offered to
// its host no more, and to nobody once two hosts have said so. Nor is a host offered
// any that gets nothing from two. What was to come to the pilot from there comes from storage.
func (fl *fleet) unserved(p *pilot, from taskqueue.PilotID) {
	q := fl.pilots[from]
	if q == nil || q.info.Address == "" {
		return
	}
	for _, x := range p.exchange.arriving {
		if x.from == q {
			x.setSource(nil, 0)
		}
	}
	if slices.Contains(q.exchange.cutFrom, p.host.name) || len(q.exchange.cutFrom) >= maxCut {
		return
	}
	q.exchange.cutFrom = append(q.exchange.cutFrom, p.host.name)
	fl.event(taskqueue.Event{Kind: taskqueue.SourceCut, Pilot: p.id, Site: p.info.Site, Host: p.host.name,
		Name: string(from)})
	if len(p.host.cut) < maxCut && !slices.Contains(p.host.cut, from) {
		p.host.cut = append(p.host.cut, from)
	}
}

// isLastCopy reports whether no other pilot holds the version from which this one,
// which shares its cache, could get it.
func (fl *fleet) isLastCopy(p *pilot, v *version) bool {
	return p.info.Address != "" && !slices.ContainsFunc(v.holders[:min(len(v.holders), maxCandidates)],
		func(q *pilot) bool {
			return q.host != p.host && fl.mayServe(v, q, p)
		})
}
