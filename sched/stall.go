package sched

import (
	"maps"
	"time"
)

// stalls is the processor time that tasks with a slot had had when they were last
// found asleep.
type stalls map[*Task]time.Duration

// lendStalled lends the slots of tasks that have been asleep since the last look, not
// through the scheduler, to tasks that wait. So tasks that block with a slot delay
// others for a moment only, and a lock that a task holds across a checkpoint does not
// end in a deadlock of all slots: those who block for it lend theirs until its holder
// has one. This works where a task has a thread of its own, which the kernel knows
// about.
func (s *Scheduler) lendStalled(before stalls) {
	holders := s.slots.holders()
	now := make(stalls, len(holders))
	for _, t := range holders {
		cpu, asleep := t.thread.asleep()
		if !asleep {
			continue
		}
		now[t] = cpu
		if had, ok := before[t]; ok && had == cpu {
			s.slots.stall(t, s.now())
			s.saidStalled.Do(func() {
				s.log.Warn("sched: a task blocks with a slot while others wait for one, and lends it to them; " +
					"tasks should wait through the scheduler, and hold no lock across a checkpoint or a wait")
			})
		}
	}
	clear(before)
	maps.Copy(before, now)
}
