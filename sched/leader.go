package sched

import "context"

// A source that blocks for its group needs somebody to do it. As long as nobody
// else does, the goroutine that waits does so itself: its event then finds it on
// the thread that the kernel has woken, without a switch between goroutines and
// without waking another thread. When its own event has come while others still
// wait, it leaves the work to a driver on a thread of the pool.

// elect makes the waiter of e the one who blocks, if there is a thread left for
// it in the pool. calls is held.
func (src *source) elect(e *entry) bool {
	if src.driving.Load() || !src.s.pool.seize() {
		return false
	}
	src.driving.Store(true)
	e.leads = true
	return true
}

// lead polls and blocks for the group until e has left it.
func (src *source) lead(ctx context.Context, e *entry) {
	stop := context.AfterFunc(ctx, func() {
		e.abort(ctx.Err())
		src.guard("Unblock", src.unblock)
	})
	defer stop()
	src.calls.Lock()
	for !e.left && src.driveOnce() {
	}
	if src.members.Load() > 0 && !src.dead.Load() && src.broken == nil && src.wantsBlock() || len(src.joining) > 0 {
		src.s.pool.handOver(src.drive)
	} else {
		src.driving.Store(false)
		src.s.pool.release()
	}
	src.unlock()
}
