package dispatch

import (
	"container/heap"
	"fmt"
	"time"

	"fairway/internal/taskqueue"
)

type simEvent struct {
	at  time.Time
	seq int
	do  func() error
}

type simEvents []simEvent

func (h simEvents) Len() int { return len(h) }

func (h simEvents) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].seq < h[j].seq
}

func (h simEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *simEvents) Push(x any) { *h = append(*h, x.(simEvent)) }

func (h *simEvents) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (s *simulation) after(d time.Duration, do func() error) {
	s.seq++
	heap.Push(&s.events, simEvent{s.now.Add(d), s.seq, do})
}

// maxTurns bounds the turns of one run, which are some thousands to some tens
// of thousands: a run that does not end fails.
const maxTurns = 1_000_000

// loop runs until the time, with a Tick whenever the core wishes.
func (s *simulation) loop(until time.Time) error {
	for {
		if s.turns++; s.turns > maxTurns {
			return fmt.Errorf("no end after %d turns, at %v", maxTurns, s.now.Sub(epoch))
		}
		next := until
		if len(s.events) > 0 && s.events[0].at.Before(next) {
			next = s.events[0].at
		}
		if !s.wake.IsZero() && s.wake.Before(next) {
			s.now = later(s.now, s.wake)
			s.wake = time.Time{}
			if err := s.step(taskqueue.Tick{}); err != nil {
				return err
			}
			continue
		}
		s.now = later(s.now, next)
		if len(s.events) == 0 || s.events[0].at.After(until) {
			return nil
		}
		e := heap.Pop(&s.events).(simEvent)
		if err := e.do(); err != nil {
			return err
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
