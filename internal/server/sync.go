package server

import (
	"context"
	"errors"
	"sync"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/wire"
)

// waiter is a Sync call whose answer is held.
type waiter struct {
	seq    uint64
	answer chan answer // room for one
}

// waiters knows the Sync calls whose answers are held: few for each pilot, the
// newest and those that it superseded a moment ago.
type waiters struct {
	mu      sync.Mutex // guards byPilot
	byPilot map[dispatch.PilotID][]*waiter
}

func newWaiters() *waiters {
	return &waiters{byPilot: map[dispatch.PilotID][]*waiter{}}
}

func (w *waiters) add(pilot dispatch.PilotID, seq uint64) *waiter {
	one := &waiter{seq: seq, answer: make(chan answer, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byPilot[pilot] = append(w.byPilot[pilot], one)
	return one
}

func (w *waiters) remove(pilot dispatch.PilotID, one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.byPilot[pilot]
	for i, other := range rest {
		if other == one {
			rest[i] = rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			break
		}
	}
	if len(rest) == 0 {
		delete(w.byPilot, pilot)
	} else {
		w.byPilot[pilot] = rest
	}
}

// resolve gives an answer to whoever waits for it. An answer that nobody waits
// for any more is dropped: the pilot's next Sync shows that it hasn't seen it.
func (w *waiters) resolve(a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.byPilot[a.pilot] {
		if one.seq == a.seq {
			one.give(a)
		}
	}
}

// fail ends all calls, for when the cores that they wait in are gone.
func (w *waiters) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.byPilot {
		for _, one := range all {
			one.give(answer{err: err})
		}
	}
}

func (one *waiter) give(a answer) {
	select {
	case one.answer <- a:
	default: // it has one already
	}
}

// taskQueue is the service that pilots call.
type taskQueue struct {
	inbox   *inbox
	waiters *waiters
}

// Sync carries a pilot's report to the loop and holds the call until dispatch
// answers it.
func (q *taskQueue) Sync(ctx context.Context, message *wire.SyncRequest) (*wire.SyncAnswer, error) {
	in := convert.SyncFromWire(message)
	held := q.waiters.add(in.Pilot, in.Seq)
	defer q.waiters.remove(in.Pilot, held)
	err := q.inbox.send(ctx, &request{
		dispatch: []dispatch.Input{in},
		done: func(err error) {
			if err != nil {
				held.give(answer{err: err})
			}
		},
	})
	if err != nil {
		return nil, rpcError(err)
	}
	select {
	case a := <-held.answer:
		return a.message, rpcError(a.err)
	case <-q.inbox.ended:
		held.give(answer{err: errEnded}) // unless it was among the last to get one
		a := <-held.answer
		return a.message, rpcError(a.err)
	case <-ctx.Done():
		return nil, rpcError(ctx.Err())
	}
}

// rpcError gives an error the code by which a client decides: Unavailable may
// be tried again, what was refused may not.
func rpcError(err error) error {
	var coded *connect.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, ErrReloaded), errors.Is(err, errEnded):
		return connect.NewError(connect.CodeUnavailable, err)
	case errors.Is(err, dispatch.ErrRefused):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}
