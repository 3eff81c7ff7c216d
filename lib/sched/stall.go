package sched

import (
	"maps"
	"time"
)

// account is what the system says of the thread of a task: the processor time it has had, the
// time it has waited for a processor that others had, and whether it waits for something else now.
type account struct {
	used, delayed time.Duration
	asleep        bool
}

// look is what a task with a slot was like when it was first looked at in its turn.
type look struct {
	began int64 // of the turn
	at    int64
	account
}

// stalls are the tasks with a slot that have been looked at.
type stalls map[*Task]look

// idleBetween reports whether the task has used less than half of the time since the look, not
// counting what others had of its processor.
func (l look) idleBetween(a account, now int64) bool {
	free := time.Duration(now-l.at) - (a.delayed - l.delayed)
	return 2*(a.used-l.used) < free
}

// lendStalled lends the slots of tasks that block with a slot, not through the scheduler, to tasks
// that wait: of those that are asleep now, and have used less than half of their time since they
// were looked at first in this turn. So tasks that block delay others for a moment only, whether
// they do it once for long or often for a moment, and a lock that a task holds across a checkpoint
// does not end in a deadlock of all slots: those who block for it lend theirs until its holder has
// one. A task that computes again gets its slot back, at its checkpoints or here. This works where
// a task has a thread of its own, which the kernel knows about.
func (s *Scheduler) lendStalled(before stalls) {
	holders := s.slots.holders()
	now := s.now()
	seen := make(stalls, len(holders))
	for _, h := range holders {
		a, ok := h.task.thread.account()
		if !ok {
			continue
		}
		first, known := before[h.task]
		if !known || first.began != h.began || h.stalled {
			seen[h.task] = look{h.began, now, a}
		} else {
			seen[h.task] = first
		}
		switch idle := known && first.began == h.began && first.idleBetween(a, now); {
		case idle && a.asleep && !h.stalled && s.slots.stall(h.task, now):
			s.saidStalled.Do(func() {
				s.log.Warn("sched: a task blocks with a slot while others wait for one, and lends it to them; " +
					"tasks should wait through the scheduler or in Block, and hold no lock across a checkpoint or a wait")
			})
		case h.stalled && known && !idle:
			s.slots.unstall(h.task, now)
		}
	}
	clear(before)
	maps.Copy(before, seen)
}
