// Package disk makes changes of files survive a crash of the machine. A file
// needs two steps: one for its contents, and one, through its folder, for its
// name.
//
// Beside that it has locks of files, and tells whether a folder is this user's alone.
package disk

import (
	"errors"
	"os"
	"strings"
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

// Boot is another text after each start of the machine; empty where the system
// does not tell.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
