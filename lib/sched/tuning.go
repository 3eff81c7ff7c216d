package sched

import "fairway/lib/sched/internal/processors"

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
	s.admitted++
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
	if s.tender.Load() == nil {
		t := newTender(s)
		s.tender.Store(t)
		s.pool.group.Go(t.serve)
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
	processors.Want(s, n+spare)
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
	n := processors.Allowed()
	if s.chosen > 0 {
		n = min(n, s.chosen)
	}
	if l := processors.CgroupLimit(); l > 0 {
		n = min(n, l)
	}
	return max(1, n)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
