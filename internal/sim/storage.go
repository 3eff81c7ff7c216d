package sim

import (
	"math/rand/v2"
	"time"

	"fairway/internal/sim/experiment"
)

// element is a storage element: where files live for good.
type element struct {
	experiment.StorageSpec
	name  string
	line  *link
	files map[string]int64 // PFN to size; what really is there
	used  int64
	taken int64 // by other users
	read  int64 // bytes that left it
	wrote int64 // bytes that jobs stored
}

func newElement(e *engine, s experiment.StorageSpec) *element {
	return &element{
		StorageSpec: s, name: s.Name, files: map[string]int64{},
		line: newLink(e, s.Bandwidth, s.Connection),
	}
}

// delay draws what one access out of n costs besides the transfer.
func (s *element) delay(r *rand.Rand, run time.Duration, n int) time.Duration {
	return s.Latency.Draw(r) + s.Delay(r, run, n)
}

// put stores a file. It reports false if there is no room, or if the name was
// used before, which the fencing of attempts excludes.
func (s *element) put(pfn string, size int64) bool {
	if s.has(pfn) || s.Capacity > 0 && s.used+s.taken+size > int64(s.Capacity) {
		return false
	}
	s.hold(pfn, size)
	s.wrote += size
	return true
}

// hold has a file there that no job of the run stored.
func (s *element) hold(pfn string, size int64) {
	s.files[pfn] = size
	s.used += size
}

// mayFill plans the next time when other users take all the room that is left.
// What is removed meanwhile is free for those of the run.
func (s *element) mayFill(e *engine, r *rand.Rand) {
	if s.Fills.IsZero() {
		return
	}
	e.after(s.Fills.Draw(r), func() {
		s.taken = int64(s.Capacity) - s.used
		e.after(s.FullFor.Draw(r), func() {
			s.taken = 0
			s.mayFill(e, r)
		})
	})
}

func (s *element) remove(pfn string) {
	s.used -= s.files[pfn]
	delete(s.files, pfn)
}

func (s *element) has(pfn string) bool {
	_, ok := s.files[pfn]
	return ok
}

// costOf estimates the seconds that reading a file of this size takes.
func (s *element) costOf(size int64) float64 {
	speed := float64(max(s.Bandwidth, s.Connection))
	if s.Connection > 0 && s.Bandwidth > 0 {
		speed = float64(min(s.Bandwidth, s.Connection))
	}
	if speed == 0 {
		return s.Latency.Mean.Seconds()
	}
	return s.Latency.Mean.Seconds() + float64(size)/speed
}
