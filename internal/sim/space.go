package sim

import (
	"slices"

	"fairway/internal/eviction"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// space is the disk that a group of pilots use as one cache: those of one
// pilot, of a host or of a site (paper 3, section IV-D). A file takes its room
// once, whatever the number of pilots that link it, and leaves with its last
// link.
type space struct {
	spec    experiment.CacheSpec
	order   *eviction.Order[taskqueue.FileRef]
	files   map[taskqueue.FileRef]*stored
	members []*pilot
	used    int64

	fetched map[taskqueue.FileRef][]func() // who waits for a file that is fetched ahead
}

// stored is a file in a space.
type stored struct {
	size  int64
	links []*pilot // in the order in which they came
	inUse int      // attempts that read it

	changed bool // it is not what was put there
}

func newSpace(spec experiment.CacheSpec) *space {
	order, err := eviction.New[taskqueue.FileRef](eviction.Policy(spec.Policy))
	if err != nil {
		panic(err) // Experiment.check knows the policies
	}
	return &space{
		spec: spec, order: order, files: map[taskqueue.FileRef]*stored{}, fetched: map[taskqueue.FileRef][]func(){},
	}
}

// limit is CacheSize of section IV-C for each pilot. That of IV-D keeps Spare free
// once, although each pilot runs a job that needs it.
func (s *space) limit() int64 {
	return max(int64(s.spec.Size-s.spec.Spare), 0) * int64(len(s.members))
}

// holds reports whether a file is there and, if so, which pilot's link is the
// oldest.
func (s *space) holds(f taskqueue.FileRef) (*pilot, bool) {
	e := s.files[f]
	if e == nil {
		return nil, false
	}
	return e.links[0], true
}

// insert puts a file into the space for a pilot, if it fits after files that
// may go have gone. It reports whether the space grew.
func (s *space) insert(p *pilot, f taskqueue.FileRef, size int64, cost float64) bool {
	if e := s.files[f]; e != nil {
		s.link(p, f, e)
		return false
	}
	if size > s.limit() || !s.makeRoom(size) {
		return false
	}
	s.files[f] = &stored{size: size, links: []*pilot{p}}
	s.used += size
	s.order.Store(f, size, cost)
	p.cacheAdded(f, size)
	if len(s.members) > 1 {
		p.run.after(s.spec.Look, func() { s.linkAll(f) })
	}
	return true
}

// link gives a pilot its own link to a file that another has.
func (s *space) link(p *pilot, f taskqueue.FileRef, e *stored) {
	if !slices.Contains(e.links, p) {
		e.links = append(e.links, p)
		p.cacheAdded(f, e.size)
		p.reportSoon()
	}
}

// linkAll is what happens once the pilots that share the space have looked
// and found a file.
func (s *space) linkAll(f taskqueue.FileRef) {
	if e := s.files[f]; e != nil {
		for _, p := range s.members {
			s.link(p, f, e)
		}
	}
}

// makeRoom evicts until size more bytes fit. It reports false, having evicted
// nothing, if what may go is not enough.
func (s *space) makeRoom(size int64) bool {
	free := s.limit() - s.used
	if free >= size {
		return true
	}
	var going []taskqueue.FileRef
	for f := range s.order.Going() {
		if free >= size {
			break
		}
		if s.idle(f) {
			going = append(going, f)
			free += s.files[f].size
		}
	}
	if free < size {
		return false
	}
	for _, f := range going {
		s.evict(f)
	}
	return true
}

// evict takes a file away from all that link it.
func (s *space) evict(f taskqueue.FileRef) {
	e := s.files[f]
	s.forget(f, e)
	for _, p := range e.links {
		p.cacheGone(f)
	}
}

func (s *space) forget(f taskqueue.FileRef, e *stored) {
	s.used -= e.size
	s.order.Drop(f)
	delete(s.files, f)
}

// join adds a pilot to those that use the space. It finds what is there when
// it looks.
func (s *space) join(p *pilot) {
	s.members = append(s.members, p)
	if len(s.members) == 1 {
		return
	}
	there := slices.Clone(s.members[0].linked)
	p.run.after(s.spec.Look, func() {
		for _, f := range there {
			if e := s.files[f]; e != nil && !p.dead {
				s.link(p, f, e)
			}
		}
	})
}

// leave takes away a pilot that has ended, with its links, and then what no
// longer fits.
func (s *space) leave(p *pilot) {
	s.members = slices.DeleteFunc(s.members, func(m *pilot) bool { return m == p })
	for _, f := range p.linked {
		e := s.files[f]
		if e == nil {
			continue
		}
		e.links = slices.DeleteFunc(e.links, func(m *pilot) bool { return m == p })
		if len(e.links) == 0 {
			s.forget(f, e)
		}
	}
	s.shrink()
}

// shrink evicts what no longer fits, as far as no attempt reads it.
func (s *space) shrink() {
	var going []taskqueue.FileRef
	excess := s.used - s.limit()
	for f := range s.order.Going() {
		if excess <= 0 {
			break
		}
		if s.idle(f) {
			going = append(going, f)
			excess -= s.files[f].size
		}
	}
	for _, f := range going {
		s.evict(f)
	}
}

// idle reports whether no attempt reads a file.
func (s *space) idle(f taskqueue.FileRef) bool { return s.files[f].inUse == 0 }

// onHost reports whether a pilot of the host links the file.
func (s *space) onHost(e *stored, host string) bool {
	return slices.ContainsFunc(e.links, func(p *pilot) bool { return p.slot.host == host })
}
