package server

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/wire"
	"fairway/sched"
)

// ProgressPause is the least time between two reports of one stream.
const ProgressPause = 100 * time.Millisecond

// Progress streams the state of the run: at once, then whenever it has changed
// but not more often than ProgressPause allows, and a last time when it has
// ended.
func (a *api) Progress(ctx context.Context, r *wire.ProgressRequest, stream *connect.ServerStream[wire.ProgressReport]) error {
	for {
		changed := a.state.changes()
		report, err := a.progress(ctx)
		if err != nil {
			return rpcError(err)
		}
		if err := stream.Send(report); err != nil {
			return err
		}
		if report.GetEnded() || !r.GetFollow() || changed == nil {
			return nil
		}
		if err := a.pause(ctx, changed); err != nil {
			return rpcError(err)
		}
	}
}

func (a *api) pause(ctx context.Context, changed <-chan struct{}) error {
	if err := a.sched.Sleep(ctx, ProgressPause); err != nil {
		return err
	}
	_, err := sched.Receive(ctx, a.sched, changed)
	if errors.Is(err, sched.ErrChannelClosed) {
		return nil
	}
	return err
}

func (a *api) progress(ctx context.Context) (*wire.ProgressReport, error) {
	report := new(wire.ProgressReport)
	err := a.state.look(ctx, func(c *cores) {
		report.Workflow = c.tally.workflow
		report.Steps = c.tally.steps(c.dispatch)
		report.Summary = c.tally.summary(c.dispatch)
		report.SecondsLeft = c.tally.left(c.dispatch).Seconds()
		registered := 0
		for _, p := range c.dispatch.Pilots() {
			registered++
			if p.Running > 0 {
				report.PilotsBusy++
			} else {
				report.PilotsIdle++
			}
		}
		report.PilotsInactive = int64(max(len(c.dispatch.Launches())-registered, 0))
		a.state.report(report)
	})
	return report, err
}
