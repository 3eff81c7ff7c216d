package sched

import (
	"sync"
	"sync/atomic"
	"time"

	"fairway/lib/sched/internal/processors"
)

const (
	tendEvery  = 100 * time.Millisecond // between looks at what goes on, and after something has happened
	tendRest   = 5 * time.Second        // between looks otherwise, and at the processors that the process may use
	tendLinger = time.Second            // how long after the last task
)

// tender looks after the turns of tasks, the slices of threads and the number of slots while there
// are tasks or React is on. It looks each tendEvery while a task has a turn or threads come, once
// tendEvery after a turn has begun or a wait has ended, and each tendRest otherwise. So
// a process in which nothing happens is woken twelve times a minute.
type tender struct {
	s     *Scheduler
	timer *time.Timer

	resting atomic.Bool // since the last look nobody has stirred
	mu      sync.Mutex  // held while the timer is set

	stalls   stalls
	threads  int    // that the runtime had
	admitted uint64 // tasks, at the last look
	quiet    int64  // since when no task has been there
	rested   int64  // when threads and processors were looked at last, whether they seemed to change or not
	looks    int    // so far, for tests; guarded by Scheduler.mu
}

func newTender(s *Scheduler) *tender {
	return &tender{s: s, timer: time.NewTimer(tendEvery), stalls: make(stalls), quiet: s.now(), rested: s.now()}
}

// stir says that a turn has begun or something has happened for which the runtime may have started
// threads. It costs next to nothing where it has been said since the last look.
func (s *Scheduler) stir() {
	if t := s.tender.Load(); t != nil && t.resting.Load() {
		t.stir()
	}
}

func (t *tender) stir() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resting.CompareAndSwap(true, false) {
		t.timer.Reset(tendEvery)
	}
}

// serve looks until there are no tasks any more. Close does not end it before the last task: until
// then tasks may wait for slots, and for each other.
func (t *tender) serve() {
	defer t.timer.Stop()
	for {
		select {
		case <-t.s.drained:
			return
		case <-t.timer.C:
		}
		t.resting.Store(true) // first, so that who stirs during the look has another one made
		next, over := t.look(t.s.now())
		if over {
			return
		}
		t.rest(next)
	}
}

func (t *tender) rest(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resting.Load() {
		t.timer.Reset(d)
	}
}

// look does all that there is to do, and returns when it is to be done again at the latest, or that
// it need not be.
func (t *tender) look(now int64) (next time.Duration, over bool) {
	s := t.s
	active, lingers := t.count(now)
	if lingers && now-t.quiet >= int64(tendLinger) {
		if s.untend() {
			return 0, true
		}
		lingers = false
	}
	for _, task := range s.slots.longTurns(now) {
		task.thread.mark()
	}
	s.lendStalled(t.stalls)
	if isClosed(s.closing) && !s.priorities.threads() {
		s.slots.widen(now)
	}
	s.slots.rouse(now)
	threads, due := threadCount(), now-t.rested >= int64(tendRest)
	more := threads != t.threads
	if t.threads = threads; more || due {
		s.priorities.react()
	}
	if due {
		t.rested = now
		if active && !isClosed(s.closing) {
			s.fit()
		}
	}
	switch {
	case more || s.slots.taken():
		return tendEvery, false
	case lingers:
		return min(tendRest, time.Duration(t.quiet-now)+tendLinger), false
	}
	return time.Duration(t.rested-now) + tendRest, false
}

// count reports whether there are tasks, and whether the process still has something that was for
// the last of them.
func (t *tender) count(now int64) (active, lingers bool) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.looks++
	active = t.s.active > 0
	if active || t.s.admitted != t.admitted {
		t.quiet, t.admitted = now, t.s.admitted
	}
	return active, !active && (t.s.prepared || !t.s.reacting)
}

// untend gives back what the process has for tasks unless one has come, and ends
// the tending unless React is on.
func (s *Scheduler) untend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active > 0 {
		return false
	}
	if s.prepared {
		s.prepared = false
		processors.Want(s, 0)
	}
	if s.reacting {
		return false
	}
	s.priorities.rest()
	s.tender.Store(nil) // last: who sees that finds the process as it was
	return true
}
