//go:build linux

package console

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/cli/screen"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
)

// AsksService reports whether a command asks a server that takes workflows.
func (c *Console) AsksService() bool {
	if c.Service != "" {
		return true
	}
	dir, err := c.WorkflowFolder()
	return err == nil && folder.IsLasting(dir)
}

// serviceFolder is the folder of the server that --server names.
func (c *Console) serviceFolder() (string, error) {
	if folder.IsLasting(c.Service) {
		return filepath.Abs(c.Service)
	}
	return "", Fail(ExitUsage, "do that on the machine of the server, with --server and its folder",
		"files of a server that is reached over the network cannot be had here")
}

func serviceEnded(ended *api.EndedError) error {
	return Fail(ExitNoState, "start it with `fairway serve --state "+screen.DisplayPath(ended.Folder)+"`", "%w", ended)
}

func hasEnded(err error) bool {
	_, ended := errors.AsType[*api.EndedError](err)
	return ended
}

// DialServiceFolder is dialService for a folder of this machine.
func DialServiceFolder(ctx context.Context, address string) (*listen.Connection, error) {
	mark := filepath.Join(address, folder.StateFolder, folder.LastingName)
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrPermission) {
		return nil, Fail(ExitNoState, "ask its owner for a token (`fairway token create -o FILE`), and name that file",
			"--server %s: the folder is that of another user", address)
	}
	if !folder.IsLasting(address) {
		return nil, Fail(ExitNoState, "start one with `fairway serve --state "+address+"`",
			"--server %s: no server that takes workflows was started there", address)
	}
	connection, err := api.Connect(ctx, address)
	if ended, ok := errors.AsType[*api.EndedError](err); ok {
		return nil, serviceEnded(ended)
	}
	if err != nil {
		return nil, WithInstead(address, err)
	}
	return connection, nil
}
