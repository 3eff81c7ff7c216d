package sched

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Task is a computation that holds a slot while it computes. Checkpoint and
// Context are for its own goroutine, the rest for anybody.
type Task struct {
	s        *Scheduler
	ctx      context.Context
	priority int
	granted  chan struct{}
	done     chan struct{}
	err      error

	marks  atomic.Uint32
	turnAt atomic.Int64 // when a checkpoint asks slots whether to go on
	share  share        // guarded by slots.mu

	thread    thread
	goroutine atomic.Uint64 // of the task, where tasks have no threads of their own; 0 after it

	blocks  bool      // in Block; for the task's own goroutine
	short   int       // turns in a row that were short
	started time.Time // of the present turn on a slot
	credit  int       // checkpoints until the next look at the clock
	stride  int       // what credit is set to
	looked  time.Time // last look at the clock
	cause   *stats    // kind whose event began the present turn
}

// TaskOption changes how a task is scheduled.
type TaskOption func(*Task)

// AtPriority gives a task a priority. Higher ones get slots first and take them
// at the checkpoints of lower ones; zero is usual.
func AtPriority(p int) TaskOption { return func(t *Task) { t.priority = p } }

type taskKey struct{}

func taskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Go starts f as a task. It runs when a slot is free, also where the scheduler is closed
// meanwhile; if ctx ends before, it is not run. At most Config.Tasks tasks may exist; one more ends with
// [ErrTooMany].
func (s *Scheduler) Go(ctx context.Context, f func(*Task) error, options ...TaskOption) *Task {
	t := s.newTask(ctx, options)
	if err := s.admit(); err != nil {
		t.err = fmt.Errorf("start task: %w", err)
		close(t.done)
		return t
	}
	go func() {
		defer s.dismiss()
		defer close(t.done)
		t.err = ErrExited
		t.err = t.run(f)
	}()
	return t
}

// Run runs f as a task on the calling goroutine and returns its error. Called
// with the context of a task it runs f as a part of that task.
func (s *Scheduler) Run(ctx context.Context, f func(*Task) error, options ...TaskOption) error {
	if t := taskOf(ctx); t != nil && t.s == s && t.mine() {
		return f(t)
	}
	if s.config.Priorities == Nice {
		// The goroutine of a task keeps its thread, so it must not be the caller's.
		return s.Go(ctx, f, options...).Wait(context.WithoutCancel(ctx))
	}
	if err := s.admit(); err != nil {
		return fmt.Errorf("start task: %w", err)
	}
	defer s.dismiss()
	return s.newTask(ctx, options).run(f)
}

func (s *Scheduler) newTask(ctx context.Context, options []TaskOption) *Task {
	t := &Task{s: s, granted: make(chan struct{}, 1), done: make(chan struct{}), stride: 1, short: trustShort}
	t.ctx = context.WithValue(ctx, taskKey{}, t)
	for _, o := range options {
		o(t)
	}
	return t
}

func (t *Task) run(f func(*Task) error) error {
	if err := t.begin(); err != nil {
		return fmt.Errorf("wait for a slot: %w", err)
	}
	defer t.end()
	if !t.s.priorities.threads() {
		t.goroutine.Store(goroutineID())
	}
	return f(t)
}

// begin gets the first slot, unless ctx ends before. It does so also while the scheduler is closed:
// a task that has a slot may wait for what this one does.
func (t *Task) begin() error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.s.slots.start(t, t.s.now()) {
		t.resume()
		return nil
	}
	var err error
	select {
	case <-t.granted:
	case <-t.ctx.Done():
		err = t.ctx.Err()
	}
	if err != nil && t.s.slots.abandon(t, t.s.now()) {
		return err
	}
	if err != nil {
		<-t.granted
	}
	t.resume()
	return nil
}

func (t *Task) end() {
	now := time.Now()
	took := t.finishTurn(now)
	t.cause.ran(took)
	spent := t.thread.spent(took)
	t.thread.react()
	t.thread.leave()
	t.goroutine.Store(0)
	t.s.slots.end(t, t.s.since(now), spent)
}

// finishTurn notes how long the turn took that ends now.
func (t *Task) finishTurn(now time.Time) (took time.Duration) {
	took = now.Sub(t.started)
	if took >= longTurn {
		t.short = 0
	} else {
		t.short++
	}
	return took
}

// mine reports whether the caller is the task, with its slot, and not another goroutine that
// uses its context, also after its end.
func (t *Task) mine() bool {
	if t.s.priorities.threads() {
		return t.thread.mine() && !t.blocks
	}
	return t.goroutine.Load() == goroutineID() && !t.blocks
}

// goroutineID is the number of the calling goroutine, which the runtime tells nobody
// but in stack traces. It takes a microsecond or two.
func goroutineID() (id uint64) {
	var b [64]byte
	for _, c := range b[len("goroutine "):runtime.Stack(b[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}

// Context returns the context of the task, to be passed to waits so that they
// give its slot back. They do so on the task's own goroutine and until it has
// ended; the waits of other goroutines with this context leave the slot alone.
func (t *Task) Context() context.Context { return t.ctx }

// Block runs f without a slot, which goes to somebody else meanwhile, and then waits for
// one as after an event. It is for a call that is known to block outside the scheduler:
// a read of a slow file system, a lock, a library that waits. Only the task's own
// goroutine may call it. Checkpoints of the task in f do nothing, and waits there have
// no slot to give back.
func (t *Task) Block(f func()) {
	if t.blocks {
		f()
		return
	}
	t.pause()
	t.blocks = true
	defer func() {
		t.blocks = false
		t.wake(nil)
	}()
	f()
}

// Done is closed when the task has ended.
func (t *Task) Done() <-chan struct{} { return t.done }

// Wait waits for the end of the task and returns its error.
func (t *Task) Wait(ctx context.Context) error {
	if _, err := Receive(ctx, t.s, t.done); !errors.Is(err, ErrChannelClosed) {
		return fmt.Errorf("wait for task: %w", err)
	}
	return t.err
}

// longTurn is how long a turn takes for whose end threads that react should not have to wait. It
// costs two system calls to tell such a thread from others, so those of shorter turns are not: of a
// task whose last trustShort turns were short, the thread is marked by a checkpoint or by who tends
// the scheduler, where a turn is long after all.
const (
	longTurn   = time.Millisecond
	trustShort = 16
)

// resume begins a turn on a slot.
func (t *Task) resume() {
	t.thread.compute(t.s.priorities, t.short < trustShort)
	t.started = time.Now()
	t.looked, t.credit = t.started, t.stride
	t.s.stir()
}

// pauseTask gives the slot of ctx's task back for the time of a wait. It returns
// nil if the calling goroutine is no task.
func pauseTask(ctx context.Context) *Task {
	t := taskOf(ctx)
	if t == nil || !t.mine() {
		return nil
	}
	t.pause()
	return t
}

// pause ends a turn: the slot goes to somebody else while the task waits.
func (t *Task) pause() {
	now := time.Now()
	took := t.finishTurn(now)
	t.cause.ran(took)
	t.cause = nil
	spent := t.thread.spent(took)
	t.thread.react()
	t.s.slots.pause(t, t.s.since(now), spent)
}

// wake begins a turn because of an event, over the number of slots if need be and
// due.
func (t *Task) wake(cause *stats) {
	t.cause = cause
	if !t.s.slots.wake(t, t.s.now()) {
		<-t.granted
	}
	t.resume()
}
