package sched

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	entryWaiting int32 = iota
	entryCalling       // its BlockEach runs, which ends it
	entryEnding        // a result is being set
)

// entry is the part of a request that does not depend on its types.
type entry struct {
	src     *source
	owner   any // the *Request around it
	state   atomic.Int32
	index   int  // in the handle's waiting; guarded by source.calls
	grouped bool // Group was told that it joined; guarded by source.calls
	left    bool // taken out of the group; guarded by source.calls
	leads   bool // the waiter itself blocks for the group; changed under source.calls
	byBlock bool // ended by Block itself
	ready   chan struct{}
	each    *eachCall // the BlockEach of this request, if there is one
	err     error     // what Done was called with
	fail    error     // ended by ctx, Close or a panic
	born    time.Time
	ended   time.Time
}

func (e *entry) init(src *source, owner any) {
	e.src, e.owner = src, owner
	e.ready = make(chan struct{}, 1)
	e.born = time.Now()
}

// eachCall is the call of BlockEach for one request. It has the request from its beginning to its
// end, whatever ends the wait meanwhile: what it has taken by then is the result.
type eachCall struct {
	once   sync.Once // the call
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// over returns when the call has, or will not be made any more.
func (c *eachCall) over() {
	c.cancel(nil)
	c.once.Do(func() {})
}

// abort ends the wait without a result, unless it has ended already. Where BlockEach runs, that is
// asked to return and ends the wait.
func (e *entry) abort(err error) {
	if e.state.CompareAndSwap(entryWaiting, entryEnding) {
		e.fail = err
		e.src.end(e)
	} else if e.state.Load() == entryCalling {
		e.each.cancel(err)
	}
}

// await parks the caller until the entry has ended and its group knows.
func (e *entry) await(ctx context.Context) error {
	task, ended := pauseTask(ctx), false
	defer func() {
		if !ended { // a callback ends this goroutine
			e.abort(ErrExited)
		}
		e.resume(task)
	}()
	if e.leads {
		e.src.lead(ctx, e)
	} else if e.src.eager > 0 {
		e.src.s.poller.hurryFor(ctx, e)
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		e.abort(ctx.Err())
		<-e.ready
	}
	ended = true
	return e.fail
}

// resume has the waiter go on, as a task if it is one.
func (e *entry) resume(task *Task) {
	if e.each != nil {
		e.each.over()
	}
	if task != nil {
		task.wake(e.src.stats)
	} else {
		e.src.s.stir()
	}
	e.src.stats.queued(e)
}
