package cli

import (
	"fairway/internal/cli/console"
	"fairway/internal/cli/look"
)

// commands are all commands: those that run and change are here, beside those that look.
type commands struct{ *look.Commands }

func commandsOf(c *console.Console) *commands { return &commands{look.New(c)} }
