package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says how events of one kind are detected. Any subset of the callbacks
// that makes sense will do: Poll alone (a polling-only device), Block or
// BlockEach alone (a blocking-only device), both, or none (every request is
// ended by whoever calls its Done).
//
// Poll, Group and Arm of one kind never run at the same time; Poll and Group
// also stay away from Block unless Concurrent is set. They run on whatever goroutine is at
// hand, must not block and must not call Wait. (Section 3 of the paper; the
// fields poll, group, blocking_system_call and frequency of its params.)
type Kind[Req, Res any] struct {
	// Name stands in errors, metrics and String. It should be unique; without one it is "unnamed".
	Name string

	// Poll finds out which waiting requests are ready and calls their Done.
	// The slice is only valid during the call.
	Poll func(waiting []*Request[Req, Res])

	// Group is told each request that joins the waiting ones and each that
	// leaves, ended or cancelled. It may call Done, to refuse one for instance.
	Group func(r *Request[Req, Res], joined bool)

	// Arm makes an event that comes from now on end the next Block. It reports
	// false if an event may have come since the last Poll; then Poll is called
	// again. Without Arm, Block must itself return when an event has come
	// before it was called.
	Arm func() bool

	// Block returns when an event of the group may have come, when Unblock is
	// called, and after limit if that is positive. It may call Done; if it ended
	// no request, Poll is called. Returning early does no harm.
	Block func(limit time.Duration)

	// Unblock makes the Block that is running return, or the next one if none
	// is. Required with Block. Any goroutine may call it, at any time.
	Unblock func()

	// Concurrent says that Group may run during Block and that Block then watches
	// for the new request too, so that the group need not be unblocked when its
	// members change. With Arm, a request that joins during a block is polled
	// once; without, Block must notice an event that came before it joined.
	Concurrent bool

	// BlockEach waits for one request, on a thread of its own, and must return
	// when ctx ends: the wait does not return before. What it returns without an
	// error is the result of the wait, also when ctx has ended. It is used instead
	// of Block, never besides it.
	BlockEach func(ctx context.Context, req Req) (Res, error)

	// Trigger has the kind polled at once when a signal or a descriptor tells that something has
	// come. It needs Poll. An event without its trigger is found at the next one, or where Reaction
	// has the scheduler poll. With PollOnly it is not listened to. Beside Block or BlockEach the
	// scheduler chooses: it listens, which holds no thread, unless three of four triggers were in
	// vain lately and a thread is free. So each of both must tell of every event.
	Trigger Trigger

	// Interval is the time between two polls where polling is free: at
	// checkpoints and while a slot is idle. Zero means [DefaultInterval]; it is
	// never more than Reaction.
	Interval time.Duration

	// Reaction is the time within which an event should be detected. A thread of
	// the poller polls when nobody else has done so for this long. Zero means
	// Interval and an eighth of it when polling, and as soon as possible when
	// there is a choice.
	Reaction time.Duration

	// Eager is for how long after a request or an event the kind is polled again and again
	// without a pause, while a slot is idle; then every Interval. It is for kinds that can't
	// block, or mustn't (PollOnly). Zero means [DefaultEager] if Interval is at most
	// [DefaultInterval], and else not at all; negative means not at all.
	// Config.IdlePolling bounds what all kinds together take of a processor by it.
	Eager time.Duration

	// Priority orders polls that are due at the same time, higher ones first.
	Priority int

	// Strategy restricts the scheduler's choice; the zero value is Adaptive.
	Strategy Strategy

	// Syscalls tells how many system calls the callbacks have made, for metrics.
	Syscalls func() uint64

	slowBlock bool // Block may take long to return: a thread of the pool calls it, and no waiter
}

// DefaultInterval is the polling interval of kinds that name none.
const DefaultInterval = time.Millisecond

// Request is one wait as the callbacks see it.
type Request[Req, Res any] struct {
	entry
	// Value is what the waiting goroutine passed to Wait.
	Value Req

	res Res
}

// Done ends the wait with a result. The first call counts, later ones do
// nothing and report false. Any goroutine may call it, callbacks included. It may
// call Group before it returns, so the caller must not hold a lock that Group
// takes, unless the caller is Poll, Arm or Group itself.
func (r *Request[Req, Res]) Done(res Res, err error) bool { return r.done(res, err, false) }

// done is Done. byBlock says that the caller is the kind's Block, and about to
// return: it need not be unblocked if its own goroutine waits for this request.
func (r *Request[Req, Res]) done(res Res, err error, byBlock bool) bool {
	if !r.state.CompareAndSwap(entryWaiting, entryEnding) && !r.state.CompareAndSwap(entryCalling, entryEnding) {
		return false
	}
	r.res, r.err, r.byBlock = res, err, byBlock
	r.src.end(&r.entry)
	return true
}

// Handle is a registered kind.
type Handle[Req, Res any] struct {
	src     *source
	kind    Kind[Req, Res]
	waiting []*Request[Req, Res]
}

// Counts is what has happened to a kind so far.
type Counts struct {
	Polls    uint64 // polls made
	Found    uint64 // polls that found an event
	Blocks   uint64 // blocks of a thread or, for descriptors, on the runtime's poller
	Events   uint64 // waits ended by an event
	Aborted  uint64 // waits ended by ctx, Close or a panic
	Syscalls uint64 // system calls, if the kind tells
}

// Counts returns the counts of the kind.
func (h *Handle[Req, Res]) Counts() Counts { return h.src.counts() }

// Close ends the waits of the kind, now and later, with [ErrClosed] and forgets
// it. When it has returned, no callback of the kind runs, nor will again (but Syscalls), and
// what belongs to it may be closed. Called by a callback, it does not wait for that.
// A kind that lasts as long as its scheduler need not be closed.
func (h *Handle[Req, Res]) Close() { h.src.close() }

// Register makes a kind known to s. It panics if the callbacks don't fit
// together, which is a bug of the caller.
func Register[Req, Res any](s *Scheduler, kind Kind[Req, Res]) *Handle[Req, Res] {
	return register(s, kind, nil)
}

// unnamed is the name of a kind that has none, so that errors and tables are read as sentences.
const unnamed = "unnamed"

// register is Register for a kind that holds something, which free frees at its end.
func register[Req, Res any](s *Scheduler, kind Kind[Req, Res], free func()) *Handle[Req, Res] {
	kind.Name = cmp.Or(kind.Name, unnamed)
	switch {
	case kind.Block != nil && kind.Unblock == nil:
		panic("sched: kind " + kind.Name + " has Block but no Unblock")
	case kind.Block != nil && kind.BlockEach != nil:
		panic("sched: kind " + kind.Name + " has both Block and BlockEach")
	case kind.Arm != nil && (kind.Block == nil || kind.Poll == nil):
		panic("sched: kind " + kind.Name + " has Arm but not both Poll and Block")
	case kind.Trigger != nil && kind.Poll == nil:
		panic("sched: kind " + kind.Name + " has Trigger but no Poll")
	}
	if kind.Interval <= 0 {
		kind.Interval = DefaultInterval
	}
	if kind.Reaction > 0 {
		kind.Interval = min(kind.Interval, kind.Reaction)
	}
	h := &Handle[Req, Res]{kind: kind}
	hooks := h.hooks()
	hooks.free = free
	if kind.Trigger != nil {
		a := kind.Trigger.open(s, func(err error) { h.src.fail(err) })
		hooks.listening, hooks.free = listenTo(a), a.close
	}
	h.src = newSource(s, hooks)
	return h
}

// hooks strips the types off the callbacks, so that everything behind Wait is
// the same code for all kinds.
func (h *Handle[Req, Res]) hooks() hooks {
	k := &h.kind
	hk := hooks{
		name: k.Name, blocking: way{arm: k.Arm, block: k.Block, unblock: k.Unblock, concurrent: k.Concurrent},
		each: k.BlockEach != nil, slowBlock: k.slowBlock,
		interval: k.Interval, eager: k.eagerness(), reaction: k.Reaction, priority: k.Priority, strategy: k.Strategy,
		syscalls: k.Syscalls,
		add:      h.add, remove: h.remove, everybody: h.everybody,
	}
	if k.Poll != nil {
		hk.poll = func() { k.Poll(h.waiting) }
	}
	return hk
}

func (h *Handle[Req, Res]) add(owner any, e *entry) {
	r := owner.(*Request[Req, Res])
	e.index = len(h.waiting)
	h.waiting = append(h.waiting, r)
	if h.kind.Group != nil {
		h.kind.Group(r, true)
	}
}

func (h *Handle[Req, Res]) remove(e *entry) {
	r := h.waiting[e.index]
	last := len(h.waiting) - 1
	moved := h.waiting[last]
	h.waiting[e.index], moved.index = moved, e.index
	h.waiting[last] = nil
	h.waiting = h.waiting[:last]
	if h.kind.Group != nil {
		h.kind.Group(r, false)
	}
}

func (h *Handle[Req, Res]) everybody(yield func(*entry) bool) {
	for _, r := range h.waiting {
		if !yield(&r.entry) {
			return
		}
	}
}

// Wait waits until the event of req has come, and returns what the kind's
// callbacks passed to Done. It returns an error that wraps ctx.Err() when ctx
// ends first, [ErrClosed] when the scheduler is closed, or a [*PanicError]. With
// the context of a task it gives the task's slot back meanwhile.
func (h *Handle[Req, Res]) Wait(ctx context.Context, req Req) (Res, error) {
	var none Res
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("wait for %s: %w", h.kind.Name, err)
	}
	r := &Request[Req, Res]{Value: req}
	r.init(h.src, r)
	if err := h.src.join(&r.entry); err != nil {
		return none, fmt.Errorf("wait for %s: %w", h.kind.Name, err)
	}
	if h.kind.BlockEach != nil && !h.src.detectAsGroup(false) {
		h.blockEach(ctx, r)
	}
	if err := r.await(ctx); err != nil {
		return none, fmt.Errorf("wait for %s: %w", h.kind.Name, err)
	}
	return r.res, r.err
}

// blockEach gives r a thread of the pool, or has it detected together with others where no thread is
// free. A request that can't be polled waits for a thread.
func (h *Handle[Req, Res]) blockEach(ctx context.Context, r *Request[Req, Res]) {
	r.each = new(eachCall)
	r.each.ctx, r.each.cancel = context.WithCancelCause(ctx)
	started := h.src.s.pool.run(r.each.ctx, h.kind.Poll == nil, func() {
		h.src.callEach(func() { r.each.once.Do(func() { h.callEach(ctx, r) }) })
	})
	if !started {
		h.src.detectAsGroup(true)
	}
}

// callEach calls BlockEach and ends the wait with what that returns; ctx is that of the wait.
func (h *Handle[Req, Res]) callEach(ctx context.Context, r *Request[Req, Res]) {
	if !r.state.CompareAndSwap(entryWaiting, entryCalling) {
		return
	}
	h.src.stats.blocks.Add(1)
	err := ErrExited
	defer func() {
		if v := recover(); v != nil {
			err = h.src.panicked("BlockEach", v)
			h.src.fail(err)
		}
		if err != nil && r.state.CompareAndSwap(entryCalling, entryEnding) {
			r.fail = err
			h.src.end(&r.entry)
		}
	}()
	res, failed := h.kind.BlockEach(r.each.ctx, r.Value)
	err = nil
	if failed != nil && r.each.ctx.Err() != nil {
		err = cutShort(ctx, r.each.ctx, failed)
		return
	}
	r.Done(res, failed)
}

// cutShort is the error of a wait whose BlockEach returned an error after it had been asked to
// return: why it was, and what else it said.
func cutShort(ctx, each context.Context, said error) error {
	why := ctx.Err()
	if why == nil {
		why = context.Cause(each)
	}
	if errors.Is(said, why) || errors.Is(said, each.Err()) {
		return why
	}
	return fmt.Errorf("%w: %w", why, said)
}
