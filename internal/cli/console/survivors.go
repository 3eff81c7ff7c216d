//go:build linux

package console

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

// AskAbout asks about a run, and tells when pilots still compute for one that was
// cut short: what they do is not recorded yet.
func (c *Console) AskAbout(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	err := c.Ask(ctx, do)
	if folder, _ := c.FolderWithState(); folder != "" && !c.JSON && c.Service == "" {
		c.NoteSurvivors(ctx, folder)
	}
	return err
}

const noteTime = 5 * time.Second

// NoteSurvivors tells of pilots that go on without a server.
func (c *Console) NoteSurvivors(ctx context.Context, folder string) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if text := SurvivorsIn(ctx, folder).Text(); text != "" {
		fmt.Fprintf(c.Err, "fairway: %s; `fairway run` takes them over\n", text)
	}
}

type survivors struct {
	Local []string     // of this machine
	Far   *launch.Left // of sites
}

// SurvivorsIn are the pilots of a folder that go on without a server.
func SurvivorsIn(ctx context.Context, dir string) survivors {
	var s survivors
	s.Local, _ = launch.Survivors(dir) // not to know is as if there were none
	s.Far, _ = launch.LeftAtSites(ctx, dir, func(name string, l folder.Layout) (batch.System, error) {
		at, err := FindSite(dir, name)
		if err != nil {
			return nil, err
		}
		return at.Open(site.Launcher{State: l.ID, Folder: l.Pilots})
	})
	if s.Far == nil {
		s.Far = &launch.Left{}
	}
	if s.Count() == 0 && len(s.Far.Unknown) == 0 {
		return s
	}
	if connection := RunningIn(ctx, dir); connection != nil {
		connection.Close()
		return survivors{Far: &launch.Left{}}
	}
	return s
}

func (s survivors) Count() int { return len(s.Local) + s.Far.Count() }

// Text says that there are some; it is empty where there are none.
func (s survivors) Text() string {
	n := s.Count()
	at := ""
	for _, site := range slices.Sorted(maps.Keys(s.Far.Alive)) {
		at += fmt.Sprintf(", %d of them at the site %s", len(s.Far.Alive[site]), site)
	}
	switch {
	case n == 0:
		return ""
	case n == 1 && at != "":
		return "a pilot of a run that was cut short is still at the site " + slices.Collect(maps.Keys(s.Far.Alive))[0]
	case n == 1:
		return "a pilot of a run that was cut short still computes"
	default:
		return fmt.Sprintf("%d pilots of a run that was cut short still compute%s", n, at)
	}
}

// Unknown is an error where a batch system does not say whether it has pilots of the folder.
func (s survivors) Unknown(dir string) error {
	for _, site := range slices.Sorted(maps.Keys(s.Far.Unknown)) {
		return Fail(ExitRunning, "try again when it answers; if it has none, remove .fairway/pilots/*/"+site+"-*.connect",
			"whether pilots of a run in %s that was cut short still compute at the site %s is not known: %w",
			FolderText(dir), site, s.Far.Unknown[site])
	}
	return nil
}
