package sched

import (
	"slices"
	"sync"
	"time"
)

// server polls the sources that nobody else has polled in time. It has a
// goroutine only while there is something to poll.
type server struct {
	s *Scheduler

	mu      sync.Mutex
	watched []*source // by falling priority
	running bool
	poke    chan struct{} // cap 1; a source was added
}

// watch has src polled until it has no members.
func (v *server) watch(src *source) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.watched, src) {
		return
	}
	at, _ := slices.BinarySearchFunc(v.watched, src, func(a, b *source) int { return b.priority - a.priority })
	v.watched = slices.Insert(v.watched, at, src)
	if !v.running {
		v.running = true
		v.s.pool.group.Go(v.serve)
		return
	}
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// serve sleeps until a poll is overdue, and ends when nothing is left to poll.
func (v *server) serve() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, ok := v.pollOverdue()
		if !ok {
			return
		}
		v.sleep(timer, time.Until(next))
	}
}

func (v *server) sleep(timer *time.Timer, d time.Duration) {
	if d <= 0 {
		return
	}
	if d < time.Millisecond && nap(d) {
		return
	}
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-v.poke:
	}
}

// pollOverdue polls what is overdue and says when to look again, or that there
// is nothing to look for.
func (v *server) pollOverdue() (next time.Time, ok bool) {
	for _, src := range v.current() {
		due := src.overdue()
		if !due.After(time.Now()) {
			src.tryPoll()
			due = src.overdue()
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// current drops the sources without members and returns the others.
func (v *server) current() []*source {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watched = slices.DeleteFunc(v.watched, func(src *source) bool { return src.members.Load() == 0 })
	v.running = len(v.watched) > 0
	return slices.Clone(v.watched)
}

// pollDue polls what is due at now; whoever has processor time to spare calls it.
func (v *server) pollDue(now int64) {
	for _, src := range v.current() {
		if src.due.Load() <= now {
			src.tryPoll()
		}
	}
}

// overdue is when the server polls src if nobody else does.
func (src *source) overdue() time.Time {
	extra := max(0, src.reaction-src.interval)
	return src.s.at(src.due.Load()).Add(extra)
}
