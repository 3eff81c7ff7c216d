package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/state"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// ProgressPause is the least time between two reports of one stream, but for the last one.
const ProgressPause = 100 * time.Millisecond

// Progress streams the state of the run: at once, then whenever it has changed
// but not more often than ProgressPause allows, at least every access.KeepAlive, and a
// last time as soon as it has ended.
func (s *Service) Progress(
	ctx context.Context, r *wire.ProgressRequest, stream *connect.ServerStream[wire.ProgressReport],
) error {
	a, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	for {
		changed := a.run.Changes()
		report, err := Progress(ctx, a.run)
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

func (a *view) pause(ctx context.Context, changed <-chan struct{}) error {
	if ended, err := a.closed(ctx, a.run.Ended(), ProgressPause); err != nil || ended {
		return err
	}
	_, err := a.closed(ctx, changed, access.KeepAlive)
	return err
}

// closed waits until ch is closed, and reports whether it is, but no longer than limit.
func (a *view) closed(ctx context.Context, ch <-chan struct{}, limit time.Duration) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := sched.Receive(waiting, a.sched, ch)
	switch {
	case errors.Is(err, sched.ErrChannelClosed):
		return true, nil
	case waiting.Err() != nil:
		return false, ctx.Err()
	}
	return false, err
}

// Progress tells how a run stands, or how it ended.
func Progress(ctx context.Context, run Run) (*wire.ProgressReport, error) {
	report := new(wire.ProgressReport)
	err := run.QueryAll(ctx, func(c *state.Cores) {
		report.Workflow, report.Run = c.Tally.Workflow, uint32(c.Run)
		report.Steps = c.Tally.Steps(c)
		report.Summary = c.Tally.Summary(c)
		report.SecondsLeft = c.Tally.Left(c).Seconds()
		registered := 0
		for _, p := range c.Dispatch.Pilots() {
			registered++
			switch {
			case !p.Silent.IsZero():
				report.PilotsSilent++
				report.RunningUnheard += int64(p.Running)
			case p.Running > 0:
				report.PilotsBusy++
				storing := c.Tally.Storing[p.Pilot]
				report.OutputsStored += storing.Stored
				report.OutputsToStore += storing.Of
			default:
				report.PilotsIdle++
			}
		}
		report.PilotsInactive = int64(max(len(c.Dispatch.Launches())-registered, 0))
		run.Report(report, c)
	})
	return report, err
}
