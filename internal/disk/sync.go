// Package disk makes what a program did to files survive a crash of the
// machine. A file needs that for its contents, and once more, through its
// folder, for its name.
package disk

import (
	"errors"
	"os"
)

// Sync returns when the contents of a file, or the names in a folder, are on
// disk. After an error they may be there or not.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
