package loop

import (
	"errors"
	"log/slog"

	"fairway/internal/server/state"
	"fairway/lib/sched"
)

// Rehearsal steps cores as a loop does that has no pilots and no store. It begins with
// the first request that it takes; nothing is kept or let out.
type Rehearsal struct {
	loop *Loop
	run  *Run
}

// Rehearse makes a rehearsal with loaded cores. It must be closed.
func Rehearse(cores state.Cores, s *sched.Scheduler, log *slog.Logger) *Rehearsal {
	run := NewRun(state.RunOf{Run: cores.Run, Workflow: cores.Flow.Workflow()})
	run.Cores = cores
	l := New(Config{Inbox: NewInbox(), Runs: []*Run{run}, Sched: s, Log: log})
	l.Dispatch, l.nodes = cores.Dispatch, cores.Tally.Nodes
	return &Rehearsal{l, run}
}

// Take steps a request. An error says that an input was refused.
func (r *Rehearsal) Take(request *Request) (refused error) {
	request.Run = r.run.Run
	request.Done = func(err error) { refused = err }
	r.loop.take(request)
	for len(r.loop.unfinished) > 0 {
		r.loop.goOn()
	}
	return refused
}

// Err is why the run cannot go on, or nil.
func (r *Rehearsal) Err() error {
	if !r.run.Ending.fatal {
		return nil
	}
	return errors.New(r.run.Ending.Problems()[0])
}

// Close ends the rehearsal. Its cores can still be read.
func (r *Rehearsal) Close() { r.loop.waker.stop() }
