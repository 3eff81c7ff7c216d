package server

import (
	"context"
	"errors"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/state"
	"fairway/sched"
)

// ErrReloaded ends a request whose effects were lost because the store failed:
// it has changed nothing, and may be made again.
var ErrReloaded = errors.New("the store failed and the state was loaded again; repeat the request")

// errEnded ends a request that came when the loop had ended.
var errEnded = errors.New("the run has ended")

// request is the single entry of the loop: everything that changes a run comes
// as one, so a recording of the inputs of all requests replays the run.
type request struct {
	// prepare runs in the loop before the inputs are stepped, and may look at
	// the cores, refuse the request, or add to it.
	prepare func(*state.Cores, *request) error

	dispatch []dispatch.Input
	flow     []flow.Input
	records  []dispatch.Record // of the server's own tables

	// ask runs in the loop after the inputs were stepped. It must only read.
	ask func(*state.Cores)

	// done is called once: with nil when all is durable, else with what went
	// wrong: dispatch.ErrRefused, ErrReloaded, errEnded. It must not block.
	done func(error)
}

// inboxSize is how many requests wait for the loop before those who make them
// wait too.
const inboxSize = 256

// inbox is how goroutines reach the loop.
type inbox struct {
	requests chan *request
	ended    chan struct{} // closed when the loop takes no more
	sched    *sched.Scheduler
}

func newInbox(s *sched.Scheduler) *inbox {
	return &inbox{requests: make(chan *request, inboxSize), ended: make(chan struct{}), sched: s}
}

// send hands a request to the loop; its done says what became of it.
func (i *inbox) send(ctx context.Context, r *request) error {
	select {
	case i.requests <- r:
		return nil
	case <-i.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do carries out a request and waits until it is durable.
func (i *inbox) do(ctx context.Context, r *request) error {
	result := make(chan error, 1)
	r.done = func(err error) { result <- err }
	if err := i.send(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-result:
		return err
	case <-i.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result: // it was among the last
		return err
	default:
		return errEnded
	}
}

// deliver is do for the server's own goroutines, which repeat a request that
// was lost. make makes the request anew each time.
func (i *inbox) deliver(ctx context.Context, newRequest func() *request) error {
	for {
		err := i.do(ctx, newRequest())
		if !errors.Is(err, ErrReloaded) {
			return err
		}
	}
}

// look asks the loop a question and waits for the answer. It doesn't wait for
// the disk: what is seen may not be durable yet.
func (i *inbox) look(ctx context.Context, ask func(*state.Cores)) error {
	seen := make(chan struct{})
	r := &request{ask: func(c *state.Cores) { ask(c); close(seen) }, done: func(error) {}}
	if err := i.send(ctx, r); err != nil {
		return err
	}
	select {
	case <-seen:
		return nil
	case <-i.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}
