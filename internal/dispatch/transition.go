package dispatch

import (
	"container/heap"
	"fmt"
	"time"
)

// transition is what all parts of a Core share while one input is taken: the time,
// the effects so far, and what is still to be done. It holds no state of jobs,
// files or pilots. Only the timers last from one transition to the next.
type transition struct {
	config  Config  // constant
	now     instant // never goes back
	effects Effects // what the caller gets when it ends
	timers  timers
	work    worklists
	silent  bool // while a Core is loaded: what happened before is no event
}

// worklists is how a part tells what follows from a change without knowing who
// acts on it: it appends, and Core.propagate takes. All lists are empty between
// transitions.
type worklists struct {
	examine []*job    // Waiting, and their last obstacle may have gone
	block   []*job    // a version that they read became missing
	unblock []*job    // a missing version that they read may come again
	wanted  []wanting // versions to be made again
	cancel  []*job    // may run again for nothing: their regeneration is to be cancelled
	changed []*job    // committed, and a copy of their outputs came or went
	fresh   []*job    // became Ready
	askers  []*pilot  // want jobs
	answers []*pilot  // are to be answered
	resume  []*run    // go on: their ready jobs are to be offered again
	failed  []*job    // have failed for good, which may halt their runs
}

func pop[T any](list *[]T) T {
	last := len(*list) - 1
	v := (*list)[last]
	*list = (*list)[:last]
	return v
}

func (s *transition) clearEffects() {
	e := &s.effects
	*e = Effects{
		Persist: emptied(e.Persist), Replies: emptied(e.Replies), Start: emptied(e.Start), Stop: emptied(e.Stop),
		Publish: emptied(e.Publish), Remove: emptied(e.Remove), Events: emptied(e.Events),
	}
}

// maxSpare is up to how many elements the memory of a list is used again. That of a
// longer one would keep alive what a transition long ago was about.
const maxSpare = 1 << 10

// emptied returns an empty list, with the memory of this one if that is small.
func emptied[T any](list []T) []T {
	if cap(list) > maxSpare {
		return nil
	}
	return list[:0]
}

func (s *transition) event(e Event) {
	if s.silent {
		return
	}
	e.At = s.now.time()
	s.effects.Events = append(s.effects.Events, e)
}

func (s *transition) jobEvent(kind EventKind, j *job, reason string) {
	s.event(Event{Kind: kind, Job: j.id, Name: j.name, Step: j.step.Step, Reason: reason})
}

func (s *transition) reply(p *pilot, a Answer) {
	s.effects.Replies = append(s.effects.Replies, Reply{p.id, p.held, a})
}

// until is the time from the last transition to an instant, not below zero.
func (s *transition) until(at instant) time.Duration {
	return max(0, time.Duration(at-s.now)).Round(time.Millisecond)
}

// when says for a person when an instant comes. A Core that was loaded to be
// looked at, and never stepped, knows no time.
func (s *transition) when(at instant) string {
	if s.now == 0 {
		return "when the run goes on"
	}
	return fmt.Sprintf("in %v", s.until(at))
}

// instant is a time in nanoseconds since 1970; 0 is no time.
type instant int64

func toInstant(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixNano())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

func (i instant) after(d time.Duration) instant { return i + instant(d) }

type timerKind uint8

const (
	pilotTimer timerKind = iota // its Sync was held long enough, or it is silent too long
	jobTimer                    // its backoff is over
	groupTimer                  // jobs of it need no longer wait for their site
	graceTimer
	monitorTimer
	keptTimer // a job need no longer be kept for a pilot
)

// timer fires at or after its instant. Whoever it is for looks whether there
// is still something to do.
type timer struct {
	at    instant
	seq   uint64 // of two timers of one instant the older goes first
	kind  timerKind
	pilot *pilot
	job   *job
	group *group
}

type timers struct {
	heap timerHeap
	seq  uint64
}

func (t *timers) add(x timer) {
	t.seq++
	x.seq = t.seq
	heap.Push(&t.heap, x)
}

func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at.time()
}

// timerHeap implements heap.Interface.
type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop is for container/heap.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = timer{}
	*h = (*h)[:last]
	return t
}
