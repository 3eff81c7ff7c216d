//go:build linux

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/internal/batch"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/site"
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

// noteTime bounds the questions to batch systems beside another answer.
const noteTime = 5 * time.Second

func (c *console) noteSurvivors(ctx context.Context, folder string) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if text := survivorsIn(ctx, folder).text(); text != "" {
		fmt.Fprintf(c.err, "fairway: %s; `fairway run` takes them over\n", text)
	}
}

// survivors are the pilots of a folder that compute although nothing runs there.
type survivors struct {
	local []string     // of this machine
	far   *launch.Left // of sites
}

func survivorsIn(ctx context.Context, dir string) survivors {
	var s survivors
	s.local, _ = launch.Survivors(dir) // not to know is as if there were none
	s.far, _ = launch.LeftAtSites(ctx, dir, func(name string, l folder.Layout) (batch.System, error) {
		at, err := findSite(dir, name)
		if err != nil {
			return nil, err
		}
		return at.Open(site.Launcher{State: l.ID, Folder: l.Pilots})
	})
	if s.far == nil {
		s.far = &launch.Left{}
	}
	if s.count() == 0 && len(s.far.Unknown) == 0 {
		return s
	}
	if connection := runningIn(ctx, dir); connection != nil {
		connection.Close()
		return survivors{far: &launch.Left{}}
	}
	return s
}

func (s survivors) count() int { return len(s.local) + s.far.Count() }

// text says that there are some; it is empty where there are none.
func (s survivors) text() string {
	n := s.count()
	at := ""
	for _, site := range slices.Sorted(maps.Keys(s.far.Alive)) {
		at += fmt.Sprintf(", %d of them at the site %s", len(s.far.Alive[site]), site)
	}
	switch {
	case n == 0:
		return ""
	case n == 1 && at != "":
		return "a pilot of a run that was cut short is still at the site " + slices.Collect(maps.Keys(s.far.Alive))[0]
	case n == 1:
		return "a pilot of a run that was cut short still computes"
	default:
		return fmt.Sprintf("%d pilots of a run that was cut short still compute%s", n, at)
	}
}

// unknown is an error where a batch system does not say whether it has pilots of the folder.
func (s survivors) unknown(dir string) error {
	for _, site := range slices.Sorted(maps.Keys(s.far.Unknown)) {
		return fail(exitRunning, "try again when it answers; if it has none, remove .fairway/pilots/*/"+site+"-*.connect",
			"whether pilots of a run in %s that was cut short still compute at the site %s is not known: %w",
			folderText(dir), site, s.far.Unknown[site])
	}
	return nil
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
	left := survivorsIn(ctx, folder)
	n := left.count()
	switch {
	case n == 0 && len(left.far.Unknown) > 0:
		return left.unknown(folder)
	case n == 0:
		return nothingRuns(folder)
	case !now:
		return fail(exitNoState, "`fairway run` takes them over, and `fairway stop --now` ends them",
			"nothing runs in %s, but %s", folderText(folder), left.text())
	}
	if len(left.local) > 0 {
		err = launch.EndSurvivors(folder)
	}
	if err == nil {
		err = left.far.End(ctx)
	}
	if err != nil {
		return fmt.Errorf("ending the pilots of a run that was cut short: %w", err)
	}
	if err := left.unknown(folder); err != nil {
		return err
	}
	return c.printDone(&wire.StopResponse{}, nil, fmt.Sprintf("the pilots of a run that was cut short are ended: %d", n))
}

// refuseSurvivors keeps pilots that still compute from losing their files.
func refuseSurvivors(ctx context.Context, folder string) error {
	left := survivorsIn(ctx, folder)
	if left.count() == 0 {
		return left.unknown(folder)
	}
	return fail(exitRunning, "`fairway run` takes them over, and `fairway stop --now` ends them", "%s in %s", left.text(),
		folderText(folder))
}
