// Package service has the commands about servers that take workflows: who submits, who may, and what
// has been submitted.
package service

import "fairway/internal/cli/console"

// Commands are those about a server that takes workflows.
type Commands struct{ *console.Console }

// New returns the commands of a console.
func New(c *console.Console) *Commands { return &Commands{c} }
