package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/disk"
)

// KindError says that the state of a folder is that of a lasting server, where one of a workflow is
// asked for, or the other way round.
type KindError struct {
	Folder  string
	Lasting bool // the state is that of a lasting server
}

func (e *KindError) Error() string {
	if e.Lasting {
		return fmt.Sprintf("%s is the state of a server that takes workflows (`fairway serve`)", e.Folder)
	}
	return fmt.Sprintf("%s is the folder of a workflow that was run there", e.Folder)
}

// IsLasting reports whether a workflow folder has the state of a lasting server.
func IsLasting(workflow string) bool {
	_, err := os.Lstat(filepath.Join(workflow, StateFolder, LastingName))
	return err == nil
}

// ClaimKind makes a state, of which the caller has the lock, that of a lasting server, or refuses one
// of the other kind with a *KindError.
func ClaimKind(l *Layout, lasting bool) error {
	mark := filepath.Join(l.State, LastingName)
	if is := IsLasting(l.Workflow); is == lasting {
		return nil
	} else if is {
		return &KindError{l.Workflow, true}
	}
	if _, err := os.Lstat(filepath.Join(l.State, StoreFile)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&KindError{l.Workflow, false}, IgnoreMissing(err))
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	return disk.Sync(l.State)
}
