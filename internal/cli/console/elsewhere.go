//go:build !linux

package console

import (
	"context"

	"fairway/internal/server/listen"
)

// What this program is on other systems than Linux: a client of servers that run there. This file
// has the few things that the other files of the package want from those that are for Linux alone.

// OnLinux is the error of what only Linux can do.
func OnLinux(what string) error {
	return Fail(ExitUsage, "run it on Linux; from here, submit to a server with --server", "%s works on Linux only", what)
}

// NoServer is the error where no server is named.
func NoServer() error {
	return Fail(ExitUsage, "name a copy of the file .fairway/service of a server (fairway serve) with --server, or with $"+
		ServerVariable, "it is not said which server is meant, and runs of a folder are on Linux only")
}

func (c *Console) askHere(context.Context, Asking) error        { return NoServer() }
func (c *Console) askRunningHere(context.Context, Asking) error { return NoServer() }

// AskAbout asks the server that is named.
func (c *Console) AskAbout(ctx context.Context, do Asking) error { return c.Ask(ctx, do) }

// AsksService reports whether a server is named.
func (c *Console) AsksService() bool { return c.Service != "" }

// ShownPlaces gives a stored file the name that the server gives it.
func (c *Console) ShownPlaces() (func(pfn string) string, error) {
	return func(pfn string) string { return pfn }, nil
}

// IsFolderOfRun is asked for folders of runs, which are on Linux only.
func IsFolderOfRun(string) bool { return false }

func isLasting(string) bool { return false }

func isUnderwayIn(string) bool { return false }

func yetToAnswer(string) error { return nil }

func hasEnded(error) bool { return false }

func (c *Console) isUnderway(context.Context) bool { return false }

// DialServiceFolder is refused: the folders of servers are on Linux only.
func DialServiceFolder(_ context.Context, address string) (*listen.Connection, error) {
	return nil, Fail(ExitUsage, "name a copy of the file .fairway/service in it",
		"--server %s: the folder of a server is for Linux only", address)
}
