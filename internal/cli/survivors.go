//go:build linux

package cli

import (
	"context"
	"fmt"

	"fairway/internal/server/launch"
	"fairway/internal/wire"
)

// askAbout asks about a run, and tells when pilots still compute for one that was
// cut short: what they do is not recorded yet.
func (c *console) askAbout(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	err := c.ask(ctx, do)
	if folder, _ := c.folderWithState(); folder != "" && !c.json && c.service == "" {
		c.noteSurvivors(ctx, folder)
	}
	return err
}

func (c *console) noteSurvivors(ctx context.Context, folder string) {
	if text := survivorsText(survivorsIn(ctx, folder)); text != "" {
		fmt.Fprintf(c.err, "fairway: %s; `fairway run` takes them over\n", text)
	}
}

// survivorsIn are the pilots of a folder that compute although nothing runs
// there.
func survivorsIn(ctx context.Context, folder string) []string {
	survivors, _ := launch.Survivors(folder) // not to know is as if there were none
	if len(survivors) == 0 {
		return nil
	}
	if connection := runningIn(ctx, folder); connection != nil {
		connection.Close()
		return nil
	}
	return survivors
}

func survivorsText(launches []string) string {
	switch len(launches) {
	case 0:
		return ""
	case 1:
		return "a pilot of a run that was cut short still computes"
	default:
		return fmt.Sprintf("%d pilots of a run that was cut short still compute", len(launches))
	}
}

// stopLeft stops what a run has without its server: the job that is to be one, or pilots.
func (c *console) stopLeft(ctx context.Context, now bool) error {
	if withdrawn, err := c.stopPending(); withdrawn || err != nil {
		return c.printDone(&wire.StopResponse{}, err, "the job of the server is cancelled")
	}
	return c.stopSurvivors(ctx, now)
}

// stopSurvivors is for a folder where no server runs that could be stopped.
func (c *console) stopSurvivors(ctx context.Context, now bool) error {
	folder, err := c.folderWithState()
	if err != nil {
		return err
	}
	launches := survivorsIn(ctx, folder)
	switch {
	case len(launches) == 0:
		return nothingRuns(folder)
	case !now:
		return fail(exitNoState, "`fairway run` takes them over, and `fairway stop --now` ends them",
			"nothing runs in %s, but %s", folderText(folder), survivorsText(launches))
	}
	if err := launch.EndSurvivors(folder); err != nil {
		return fmt.Errorf("ending the pilots of a run that was cut short: %w", err)
	}
	return c.printDone(&wire.StopResponse{}, nil, fmt.Sprintf("the pilots of a run that was cut short are ended: %d",
		len(launches)))
}

// refuseSurvivors keeps pilots that still compute from losing their files.
func refuseSurvivors(ctx context.Context, folder string) error {
	launches := survivorsIn(ctx, folder)
	if len(launches) == 0 {
		return nil
	}
	return fail(exitRunning, "`fairway run` takes them over, and `fairway stop --now` ends them", "%s in %s",
		survivorsText(launches), folderText(folder))
}
