package sched

import "time"

const (
	tendEvery  = 100 * time.Millisecond // looks for new threads while tasks exist
	limitEvery = 50                     // looks for a new processor limit, in tendEvery
	tendLinger = 10                     // how long after the last task, in tendEvery
)

// DefaultTasks bounds the tasks that exist at once when Config doesn't.
const DefaultTasks = 100_000

// admit counts a new task, and prepares the process when it is the first.
func (s *Scheduler) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.active >= s.config.Tasks:
		return ErrTooMany
	}
	s.active++
	s.tasks.Add(1)
	if !s.prepared {
		s.prepared = true
		s.choosePriorities()
		s.fit()
		s.startTending()
	}
	return nil
}

// React lets all threads of the process that don't compute in tasks go before
// those of other programs when they wake up, as they do beside tasks. It is for
// programs that compute little but start others that do. It lasts until Close,
// does nothing where Config.Priorities are not slices, and takes no processor
// time away from anybody in the long run.
func (s *Scheduler) React() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.reacting = true
	s.choosePriorities()
	s.startTending()
}

func (s *Scheduler) choosePriorities() {
	if s.priorities == nil {
		s.priorities = newPriorities(s.config.Priorities, s.log)
	}
}

func (s *Scheduler) startTending() {
	s.priorities.react()
	if !s.tended {
		s.tended = true
		s.pool.group.Go(s.tend)
	}
}

func (s *Scheduler) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	s.tasks.Done()
}

// fit makes slots for the processors that the process may use now.
func (s *Scheduler) fit() {
	n := s.slotCount()
	spare := s.config.Spare
	if spare <= 0 {
		spare = max(2, n/4)
	}
	s.slots.resize(n, spare-1, s.now())
	s.wantProcessors(n + spare)
}

func (s *Scheduler) slotCount() int {
	if s.config.Slots > 0 {
		return s.config.Slots
	}
	return s.limit()
}

// slotSizes returns how many slots there are, or will be once there are tasks, and
// the tasks that compute and that wait for one.
func (s *Scheduler) slotSizes() (total, running, queued int) {
	total, running, queued = s.slots.sizes()
	if total == 0 {
		total = s.slotCount()
	}
	return total, running, queued
}

// limit is the number of processors that the process may use now: what a person
// chose or else the system gives, or less if the cgroup's limit is lower.
func (s *Scheduler) limit() int {
	n := allowedProcessors()
	if s.chosen > 0 {
		n = min(n, s.chosen)
	}
	if l := cgroupLimit(); l > 0 {
		n = min(n, l)
	}
	return max(1, n)
}

// tend looks after threads and limits while there are tasks, and a while after. Close does not end
// it before the last task: until then tasks may wait for slots, and for each other.
func (s *Scheduler) tend() {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	threads, stalls := 0, make(stalls)
	for tick, quiet := 1, 0; ; tick++ {
		select {
		case <-s.drained:
			return
		case <-ticker.C:
		}
		if quiet++; s.busy() {
			quiet = 0
		}
		if quiet >= tendLinger && s.untend() {
			return
		}
		for _, t := range s.slots.longTurns(s.now()) {
			t.thread.mark()
		}
		s.lendStalled(stalls)
		if isClosed(s.closing) && !s.priorities.threads() {
			s.slots.widen(s.now())
		}
		s.slots.rouse(s.now())
		if n := threadCount(); n != threads || tick%limitEvery == 0 {
			threads = n
			s.priorities.react()
		}
		if tick%limitEvery == 0 && s.busy() && !isClosed(s.closing) {
			s.fit()
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active > 0
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
		s.wantProcessors(0)
	}
	s.tended = s.reacting
	if !s.tended {
		s.priorities.rest()
	}
	return !s.tended
}
