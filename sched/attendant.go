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
	if !s.tended {
		s.tended = true
		s.prepare()
		s.pool.group.Go(s.tend)
	}
	return nil
}

func (s *Scheduler) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// prepare makes room for what reacts: spare Ps, and priorities of threads.
func (s *Scheduler) prepare() {
	if s.priorities == nil {
		s.priorities = newPriorities(s.config.Priorities, s.log)
	}
	s.fit()
	s.priorities.react()
}

// fit makes slots for the processors that the process may use now.
func (s *Scheduler) fit() {
	n := s.config.Slots
	if n <= 0 {
		n = s.limit()
	}
	spare := s.config.Spare
	if spare <= 0 {
		spare = max(2, n/4)
	}
	s.slots.resize(n, spare-1)
	s.wantProcessors(n + spare)
}

// limit is the number of processors that the process may use: what the Go
// runtime chose at the start, or less if the cgroup's limit is lower now.
func (s *Scheduler) limit() int {
	n := s.procs
	if l := cgroupLimit(); l > 0 {
		n = min(n, l)
	}
	return max(1, n)
}

// tend looks after threads and limits while there are tasks, and a while after.
func (s *Scheduler) tend() {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	threads := 0
	for tick, quiet := 1, 0; ; tick++ {
		select {
		case <-s.closing:
			return
		case <-ticker.C:
		}
		if quiet++; s.busy() {
			quiet = 0
		}
		if quiet > tendLinger && s.untend() {
			return
		}
		if n := threadCount(); n != threads || tick%limitEvery == 0 {
			threads = n
			s.priorities.react()
		}
		if tick%limitEvery == 0 {
			s.fit()
		}
	}
}

func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active > 0
}

// untend ends the tending unless a task has come.
func (s *Scheduler) untend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tended = s.active > 0
	return !s.tended
}
