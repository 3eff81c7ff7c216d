// Package look has the commands that show what is there, and change nothing: jobs, files, logs, past
// runs, and forecasts.
package look

import (
	"fairway/internal/cli/console"
	"fairway/internal/cli/service"
)

// Commands are those that look, and those about a server.
type Commands struct{ *service.Commands }

// New returns the commands of a console.
func New(c *console.Console) *Commands { return &Commands{service.New(c)} }
