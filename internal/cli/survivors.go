//go:build linux

package cli

import (
	"context"
	"fmt"

	"fairway/internal/cli/console"
	"fairway/internal/server/launch"
	"fairway/internal/wire"
)

func (c *commands) stopLeft(ctx context.Context, now bool) error {
	if withdrawn, err := c.stopPending(); withdrawn || err != nil {
		return c.printDone(&wire.StopResponse{}, err, "the job of the server is cancelled")
	}
	return c.stopSurvivors(ctx, now)
}

func (c *commands) stopSurvivors(ctx context.Context, now bool) error {
	folder, err := c.FolderWithState()
	if err != nil {
		return err
	}
	left := console.SurvivorsIn(ctx, folder)
	n := left.Count()
	switch {
	case n == 0 && len(left.Far.Unknown) > 0:
		return left.Unknown(folder)
	case n == 0:
		return console.NothingRuns(folder)
	case !now:
		return console.Fail(console.ExitNoState, "`fairway run` takes them over, and `fairway stop --now` ends them",
			"nothing runs in %s, but %s", console.FolderText(folder), left.Text())
	}
	if len(left.Local) > 0 {
		err = launch.EndSurvivors(folder)
	}
	if err == nil {
		err = left.Far.End(ctx)
	}
	if err != nil {
		return fmt.Errorf("ending the pilots of a run that was cut short: %w", err)
	}
	if err := left.Unknown(folder); err != nil {
		return err
	}
	return c.printDone(&wire.StopResponse{}, nil, fmt.Sprintf("the pilots of a run that was cut short are ended: %d", n))
}

// refuseSurvivors keeps pilots that still compute from losing their files.
func refuseSurvivors(ctx context.Context, folder string) error {
	left := console.SurvivorsIn(ctx, folder)
	if left.Count() == 0 {
		return left.Unknown(folder)
	}
	return console.Fail(console.ExitRunning, "`fairway run` takes them over, and `fairway stop --now` ends them",
		"%s in %s", left.Text(),
		console.FolderText(folder))
}
