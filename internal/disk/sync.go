// Package disk makes changes of files survive a crash of the machine. A file
// needs two steps: one for its contents, and one, through its folder, for its
// name.
//
// Beside that it has locks of files, and tells whether a folder is this user's alone.
package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// Replace replaces a file by one with this text and mode, complete and durable, or not at all. What
// has been left beside it as PATH.new goes.
func Replace(path string, text []byte, mode fs.FileMode) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh)
		return err
	}
	return Sync(filepath.Dir(path))
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

// Machine tells this start of this machine from every other machine, whatever its
// name is: two nodes of one name share no cache, nor does one with what it was
// before it started again. It is a hash, since the identity of a machine is not
// for everybody.
func Machine() string {
	id, _ := os.ReadFile("/etc/machine-id") // without one the start tells enough
	sum := sha256.Sum256([]byte("fairway:" + strings.TrimSpace(string(id)) + ":" + Boot()))
	return hex.EncodeToString(sum[:8])
}
