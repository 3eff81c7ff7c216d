package sched

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"
	"time"
)

// Quantum is how long a task computes before a checkpoint lets an equal one
// that waits for a slot, and has used no more, go first.
const Quantum = 10 * time.Millisecond

// Grace is how long a task runs over the number of slots before its own
// checkpoints pay the debt. It is also by how much a new task begins behind the
// equal one that has computed least.
const Grace = 500 * time.Microsecond

// maxDebt bounds by how much a task that has passed no checkpoint for long can be
// behind the others afterwards.
const maxDebt = 10 * Quantum

// never is later than all times.
const never = math.MaxInt64

// allOfIt is what a turn has spent if no less is known.
const allOfIt = time.Hour

// slots hands out the right to compute. It has no clock: now is the time in
// nanoseconds since the scheduler's epoch, and does not go back; spent is what
// a turn that ends has used of its time, of which the system may have given some
// to other programs.
//
// # Who goes first
//
// Higher priorities go first. Among equals the one goes first that has used
// slots for the least time, as in fair-share schedulers that count a virtual
// runtime. What a task did not use while it waited for events hardly counts for
// it later: its level has a floor, the least that any task which can run has
// used. The floor never falls. A task that wakes up begins at the floor less a
// Quantum, or with what it has used if that is more; a new one at the floor and
// Grace.
//
// So a task that has had less than its share goes before all others when its
// event comes, over the number of slots if need be, and a task that has had more
// waits until the others have had as much. A task that is granted a slot keeps
// it for a Quantum beside equals that were there before; one that has just come
// and has used less takes over as soon as the running one has used as much.
//
// Where all slots are held for 2 Quanta, by tasks that hardly pass checkpoints, those
// that wait can't have one anyway. Then a woken task need not wait behind them: it
// runs over the number of slots if it has used less than one that runs. So reactions
// don't depend on checkpoints.
//
// # How long a task waits
//
// Let T wait for one of S slots beside equal tasks, let L be the longest time that
// any task computes between two checkpoints, and let M be the number of tasks that
// compute while T waits. No task is more than a Quantum below the floor. T is at
// most 2 Quanta + L above it: it began at most Grace above a floor that another may
// have undercut by a Quantum, or it went on computing beside a task that had used
// less, for a Quantum and until its next checkpoint. (A task that passes no
// checkpoint for long may be maxDebt above it instead.) Each of the M tasks computes
// until it has used as much as T, which is at most 3 Quanta + L, and then for a
// Quantum and until its next checkpoint, since it might have been granted its slot
// just before. After that it goes after T, also when it wakes up, since what it has
// used is not forgotten. It goes before T only where all slots are held, and if it has
// used less than one of the holders, R. R is at most 2 L above T: it has passed its last
// checkpoint because it was not above T yet, or, if L is more than a Quantum, in its
// first Quantum. So that adds 2 L. All S slots are taken all the while. So T waits at
// most
//
//	M/S * (4 Quantum + 4 L) + L
//
// of the time that the system gives to the process, where M counts new tasks too. They don't
// go before T for ever: as those that can run go on, the floor rises, and new ones begin above
// it. Mostly nobody is as far from the floor as that, and T waits for a turn of each of the
// others.
type slots struct {
	// A task that can run is in running or in the queue of its level, and one that waits for an
	// event or has ended in neither. Unless all slots are taken, nobody queues. Tasks, and who
	// tends the scheduler, call methods, which hold mu from beginning to end; what a running
	// task has to know of it is in its marks. It lasts as long as the scheduler.
	mu      sync.Mutex
	total   int
	spare   int      // tasks allowed over total, for those that events have woken
	running []*Task  // with a slot, including those over total
	stalled int      // of running: tasks that don't compute, and so don't count
	waking  int      // tasks in queues that an event has woken
	levels  []*level // by falling priority
	entered uint64   // tasks that ever came to a queue
	clocked bool     // checkpoints must look at the clock, since sources are polled
}

// level is the tasks of one priority. It exists as long as there are any.
type level struct {
	priority int
	tasks    int
	floor    time.Duration // the least used by a task that can run; never falls
	queue    queue
}

// share is what slots knows of a task. It is guarded by slots.mu.
type share struct {
	level   *level
	used    time.Duration // time with a slot, but see slots
	since   int64         // up to when used counts, while it runs
	began   int64         // beginning of the turn
	fresh   bool          // has come to the queue from outside, not from a slot
	woken   bool          // is in the queue since an event, and may run over the slots
	stalled bool          // has a slot and does not compute
	entry   uint64        // order of arrival
	index   int           // in the queue, or one of the following
}

const (
	outside = -1 - iota // neither runs nor wants to
	onSlot
)

// marks of a task, which a checkpoint looks at.
const (
	markClock uint32 = 1 << iota // see now and then what time it is
	markYield                    // a slot is wanted by somebody with a better right
)

// usedAt is what t has used if it goes on until now.
func (t *Task) usedAt(now int64) time.Duration {
	if t.share.index != onSlot || t.share.stalled {
		return t.share.used
	}
	return t.share.used + time.Duration(max(0, now-t.share.since))
}

// before reports whether t has a better right to a slot than o.
func (t *Task) before(o *Task, now int64) bool {
	if t.priority != o.priority {
		return t.priority > o.priority
	}
	a, b := t.usedAt(now), o.usedAt(now)
	return a < b || a == b && t.share.entry < o.share.entry
}

// queue is a heap of tasks of one level, by what they have used and then by
// arrival.
type queue []*Task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j], 0) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].share.index, q[j].share.index = i, j
}

func (q *queue) Push(x any) {
	t := x.(*Task)
	t.share.index = len(*q)
	*q = append(*q, t)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return t
}

// start gives a new task a slot or queues it. It reports whether t may run now;
// if not, t.granted receives when it may.
func (sl *slots) start(t *Task, now int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := sl.levelOf(t.priority)
	l.tasks++
	t.share = share{level: l, index: outside}
	sl.raise(l, now)
	t.share.used = l.floor + Grace
	return sl.take(t, sl.total, now)
}

// wake is start for a task that has paused.
func (sl *slots) wake(t *Task, now int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := t.share.level
	sl.raise(l, now)
	t.share.used = min(max(t.share.used, l.floor-Quantum), l.floor+maxDebt)
	limit := sl.total
	if sl.urgent(t, now) {
		limit += sl.spare
	}
	if sl.take(t, limit, now) {
		return true
	}
	t.share.woken = true
	sl.waking++
	return false
}

// urgent reports whether t, which an event has woken, may run over the number of
// slots: if it has used less than one that runs, and goes before those that wait or
// these can't have a slot anyway.
func (sl *slots) urgent(t *Task, now int64) bool {
	head := sl.head()
	return (head == nil || head == t || t.before(head, now) || sl.held(now)) &&
		slices.ContainsFunc(sl.running, func(r *Task) bool { return t.before(r, now) })
}

// held reports whether all slots are held by tasks that have had them for so long that
// they hardly pass checkpoints.
func (sl *slots) held(now int64) bool {
	holders := 0
	for _, r := range sl.running {
		if !r.share.stalled && now-r.share.began >= int64(2*Quantum) {
			holders++
		}
	}
	return holders >= sl.total
}

// rouse has woken tasks run over the number of slots that were not urgent when they
// woke up, as slots were not held for long then.
func (sl *slots) rouse(now int64) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.grant(now)
	sl.mark(now)
}

func (sl *slots) take(t *Task, limit int, now int64) bool {
	defer sl.mark(now)
	t.share.fresh = true
	sl.entered++
	t.share.entry = sl.entered
	if sl.computing() < limit {
		sl.run(t, now)
		return true
	}
	heap.Push(&t.share.level.queue, t)
	return false
}

// pause takes t's slot away and gives it to the one with the best right.
func (sl *slots) pause(t *Task, now int64, spent time.Duration) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.drop(t, now, spent)
	sl.grant(now)
	sl.mark(now)
}

// end is pause for good.
func (sl *slots) end(t *Task, now int64, spent time.Duration) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.drop(t, now, spent)
	sl.forget(t)
	sl.grant(now)
	sl.mark(now)
}

// abandon takes a new task off the queue. It reports false if t has been granted a
// slot in the meantime.
func (sl *slots) abandon(t *Task, now int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if t.share.index < 0 {
		return false
	}
	sl.unqueue(t)
	sl.forget(t)
	sl.mark(now)
	return true
}

// turn decides at a checkpoint whether t gives its slot up, and queues it if so:
// to pay a debt, or to let one with a better right go first. The one who goes
// first has the slot when turn returns, but is for the caller to wake: just before
// it parks, so that the next task starts on the thread that becomes free and no
// other thread is woken for it.
func (sl *slots) turn(t *Task, now int64, spent time.Duration) (yields bool, next *Task) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer sl.mark(now)
	sl.recover(t, now)
	if now < sl.turnOf(t, now) {
		return false, nil
	}
	over := sl.computing() > sl.total
	sl.drop(t, now, spent)
	t.share.used = min(t.share.used, t.share.level.floor+maxDebt)
	t.share.fresh = false
	sl.entered++
	t.share.entry = sl.entered
	if !over {
		next = sl.pop(now)
	}
	heap.Push(&t.share.level.queue, t)
	return true, next
}

// turnOf is when t, which runs, has to give its slot up if nothing changes.
func (sl *slots) turnOf(t *Task, now int64) int64 {
	if over := sl.computing() - sl.total; over > 0 {
		if sl.owes(t, over, now) {
			return now
		}
		return t.share.began + int64(Grace)
	}
	head := sl.head()
	switch {
	case head == nil || head.priority < t.priority:
		return never
	case head.priority > t.priority:
		return now
	}
	even := t.share.since + int64(head.share.used-t.share.used)
	if head.share.fresh {
		return even
	}
	return max(even, t.share.began+int64(Quantum))
}

// owes reports whether t is one of those with the worst right, of which over too
// many run.
func (sl *slots) owes(t *Task, over int, now int64) bool {
	for _, r := range sl.running {
		if r != t && !r.share.stalled && t.before(r, now) {
			over--
		}
	}
	return over > 0
}

// mark tells the running tasks what their checkpoints have to do.
func (sl *slots) mark(now int64) {
	for _, t := range sl.running {
		turn := sl.turnOf(t, now)
		t.turnAt.Store(turn)
		var m uint32
		switch {
		case turn <= now || t.share.stalled:
			m = markYield | markClock
		case turn < never || sl.clocked:
			m = markClock
		}
		t.marks.Store(m)
	}
}

// run gives t a slot.
func (sl *slots) run(t *Task, now int64) {
	t.share.index = onSlot
	t.share.since, t.share.began = now, now
	sl.running = append(sl.running, t)
}

// drop takes t's slot away.
func (sl *slots) drop(t *Task, now int64, spent time.Duration) {
	sl.recover(t, now)
	sl.raise(t.share.level, now)
	t.share.used = min(t.usedAt(now), t.share.used+spent)
	t.share.index = outside
	at := slices.Index(sl.running, t)
	sl.running[at] = sl.running[len(sl.running)-1]
	sl.running[len(sl.running)-1] = nil
	sl.running = sl.running[:len(sl.running)-1]
}

// grant gives free slots to those with the best right, and then has urgent tasks run
// over the number of slots.
func (sl *slots) grant(now int64) {
	for sl.computing() < sl.total && sl.head() != nil {
		sl.pop(now).granted <- struct{}{}
	}
	for sl.computing() < sl.total+sl.spare {
		t := sl.firstWoken(now)
		if t == nil || !sl.urgent(t, now) {
			return
		}
		sl.unqueue(t)
		sl.run(t, now)
		t.granted <- struct{}{}
	}
}

// firstWoken is the task with the best right of those in queues that an event has
// woken, or nil. If it is not the head, it is looked for only where it might be urgent.
func (sl *slots) firstWoken(now int64) (first *Task) {
	if sl.waking == 0 {
		return nil
	}
	if head := sl.head(); head.share.woken {
		return head
	}
	if !sl.held(now) {
		return nil
	}
	for _, l := range sl.levels {
		for _, t := range l.queue {
			if t.share.woken && (first == nil || t.before(first, now)) {
				first = t
			}
		}
	}
	return first
}

// unqueue takes t off its queue.
func (sl *slots) unqueue(t *Task) {
	heap.Remove(&t.share.level.queue, t.share.index)
	t.share.index = outside
	if t.share.woken {
		t.share.woken = false
		sl.waking--
	}
}

// head is the task with the best right to the next slot, or nil.
func (sl *slots) head() *Task {
	for _, l := range sl.levels {
		if len(l.queue) > 0 {
			return l.queue[0]
		}
	}
	return nil
}

// pop gives the head of the queue a slot.
func (sl *slots) pop(now int64) *Task {
	t := sl.head()
	sl.unqueue(t)
	sl.run(t, now)
	return t
}

// raise brings the floor of a level up to what all of it that can run have used.
func (sl *slots) raise(l *level, now int64) {
	least := time.Duration(never)
	if len(l.queue) > 0 {
		least = l.queue[0].share.used
	}
	for _, t := range sl.running {
		if t.share.level == l && !t.share.stalled {
			least = min(least, t.usedAt(now))
		}
	}
	if least < never {
		l.floor = max(l.floor, least)
	}
}

// levelOf returns the level of a priority, which it makes if there is none.
func (sl *slots) levelOf(priority int) *level {
	at, ok := slices.BinarySearchFunc(sl.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
	if !ok {
		sl.levels = slices.Insert(sl.levels, at, &level{priority: priority})
	}
	return sl.levels[at]
}

// forget takes t off its level, which goes with its last task.
func (sl *slots) forget(t *Task) {
	l := t.share.level
	if l.tasks--; l.tasks == 0 {
		sl.levels = slices.DeleteFunc(sl.levels, func(o *level) bool { return o == l })
	}
}

// computing is the number of tasks that use a slot.
func (sl *slots) computing() int { return len(sl.running) - sl.stalled }

// stall lends the slot of a task that has one but does not compute to others that wait, until
// it comes to a checkpoint, waits, ends or computes again. It reports whether it did.
func (sl *slots) stall(t *Task, now int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if t.share.index != onSlot || t.share.stalled || sl.head() == nil {
		return false
	}
	t.share.used, t.share.stalled = t.usedAt(now), true
	sl.stalled++
	sl.grant(now)
	sl.mark(now)
	return true
}

// unstall has a task count again whose slot was lent.
func (sl *slots) unstall(t *Task, now int64) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if t.share.index == onSlot {
		sl.recover(t, now)
		sl.mark(now)
	}
}

// recover ends the stall of t, if there is one.
func (sl *slots) recover(t *Task, now int64) {
	if t.share.stalled {
		t.share.since, t.share.began, t.share.stalled = now, now, false
		sl.stalled--
	}
}

// watchClock makes checkpoints look for polls that are due.
func (sl *slots) watchClock(on bool, now int64) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.clocked != on {
		sl.clocked = on
		sl.mark(now)
	}
}

// idle reports whether a slot is free, so that polling costs no computing.
func (sl *slots) idle() bool {
	idle, _ := sl.free()
	return idle
}

// free is idle, and reports also whether any task computes.
func (sl *slots) free() (idle, computing bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.running) == 0 || sl.computing() < sl.total, len(sl.running) > 0
}

// taken reports whether a task has a turn.
func (sl *slots) taken() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.running) > 0
}

// resize changes the number of slots. Tasks over it stop at checkpoints.
func (sl *slots) resize(total, spare int, now int64) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.total, sl.spare = total, spare
	sl.grant(now)
	sl.mark(now)
}

// widen doubles the slots if tasks wait for one. So the tasks of a scheduler that is being closed
// end where nobody can tell which of them block with a slot.
func (sl *slots) widen(now int64) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.head() == nil {
		return
	}
	sl.total *= 2
	sl.grant(now)
	sl.mark(now)
}

// longTurns returns the tasks that have had their slot for long.
func (sl *slots) longTurns(now int64) (list []*Task) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, t := range sl.running {
		if now-t.share.began >= int64(longTurn) {
			list = append(list, t)
		}
	}
	return list
}

// holder is a task with a slot.
type holder struct {
	task    *Task
	began   int64 // its turn
	stalled bool
}

// holders returns the tasks that have a slot, if others wait for one or a slot is lent.
func (sl *slots) holders() (list []holder) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.head() == nil && sl.stalled == 0 {
		return nil
	}
	for _, t := range sl.running {
		list = append(list, holder{t, t.share.began, t.share.stalled})
	}
	return list
}

func (sl *slots) sizes() (total, running, queued int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, l := range sl.levels {
		queued += len(l.queue)
	}
	return sl.total, len(sl.running), queued
}
