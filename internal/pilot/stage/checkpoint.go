package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/wire"
)

// makeCheckpointFolder makes the folder in which the command saves its state, where the attempt
// does not begin with that of the one before.
func (in *Inputs) makeCheckpointFolder(c *wire.OutputFile) error {
	path, err := in.attempt.PathOf(c.GetLfn())
	if err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(in.attempt.Slot.Folder, path), 0o755)
}

// StoreCheckpoint stores the folder in which an attempt has saved its state, and adds it to the
// result. A folder that is gone or empty is nothing to go on from, and no error.
func (ar *Area) StoreCheckpoint(a *Execution) error {
	c := a.GetCheckpoint()
	path, err := a.PathOf(c.GetLfn())
	if err != nil {
		return err
	}
	switch empty, err := a.emptyFolder(path); {
	case err != nil:
		return fmt.Errorf("%s: %w", c.GetLfn(), err)
	case empty:
		return nil
	}
	out, err := ar.store(a, written{c, c.GetLfn(), path})
	if err != nil {
		return err
	}
	a.Result.Outputs = []*wire.WrittenFile{out}
	a.Result.Usage.BytesWritten += out.GetSize()
	return nil
}

// emptyFolder reports whether nothing is in a folder of the sandbox, or there is none.
func (a *Execution) emptyFolder(path string) (bool, error) {
	folder, err := a.Slot.dir.Sub(path)
	if isMissing(err) || errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer folder.Close()
	return folder.IsEmpty(), nil
}
