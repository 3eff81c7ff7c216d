package disk

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CheckPrivate returns an error unless a path is that of a folder of this user which
// nobody else may open, and not of a link to one. It is for names in places where
// everybody may write: somebody may have made the folder before. The error of a path
// where nothing is wraps [fs.ErrNotExist].
func CheckPrivate(path string) error { return checkOwn(path, 0o077, "chmod it to 0700") }

// CheckGroupReads is CheckPrivate for a folder that the members of its group may read.
func CheckGroupReads(path string) error { return checkOwn(path, 0o027, "chmod it to 0750") }

func checkOwn(path string, denied fs.FileMode, advice string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a folder; remove it", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", path)
	case fs.FileMode(st.Mode)&denied != 0:
		return fmt.Errorf("other users may open %s, or write to it; remove it, or %s", path, advice)
	}
	return nil
}
