//go:build !linux

package look

import (
	"context"

	"fairway/internal/cli/console"
)

func (c *Commands) getStored(context.Context, string, *uint32, string) (*Fetched, error) {
	return nil, console.NoServer()
}

func (c *Commands) printPilotLog(string, int64) error { return console.OnLinux("fairway logs --pilot") }
