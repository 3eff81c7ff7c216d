package feed

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/logical"
	layout "fairway/internal/server/folder"
)

// Unfit says why what stands at a path can be no file of an input or, where the path
// ends in a slash, no folder of one; nil if it can. Nothing but folders is opened:
// opening a named pipe blocks, and opening a device may change it.
func Unfit(path string) error {
	if err := ofState(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(danglingLink(path), err)
	}
	if err != nil {
		return err
	}
	if logical.IsFolder(path) {
		if _, err := archive.List(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	if err := notRegular(path, info); err != nil {
		return err
	}
	return notReadable(path)
}

// notReadable says that this process may not read a file; nil if it may.
func notReadable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return nil
}

// ofState refuses a file of the state of a workflow, whose server may read what those who submit to
// it may not: its keys, tokens and records, and files of other runs. What came with a submission, and
// what is made of traces, is there to be read.
func ofState(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 || logical.IsFolder(path) {
		folder = path
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil //nolint:nilerr // who opens the file says so
	}
	if folder != path {
		real = filepath.Join(real, filepath.Base(path))
	}
	parts := strings.Split(real, "/")
	at := slices.Index(parts, layout.StateFolder)
	if at < 0 || at+1 < len(parts) && slices.Contains(readable, parts[at+1]) {
		return nil
	}
	return fmt.Errorf("%s is in %s, which holds the state of a workflow and its keys: name a file elsewhere", path,
		layout.StateFolder)
}

// readable are the folders of a state that hold inputs.
var readable = []string{layout.UploadsName, layout.InputsName}

// danglingLink says where the link at a path leads; nil if there is none.
func danglingLink(path string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s is a link to %s, which is not there", path, to)
}

// notRegular says what is at a path if that is no regular file.
func notRegular(path string, info fs.FileInfo) error {
	what := "of an unknown kind"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%s is %s, not a regular file", path, what)
}

// maxOutside bounds the folders that a finder remembers. Beyond it all are looked at anew.
const maxOutside = 10_000

func (f *Finder) ofState(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ofState(path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outside[folder] {
		return nil
	}
	if err := ofState(path); err != nil {
		return err
	}
	if f.outside == nil || len(f.outside) >= maxOutside {
		f.outside = map[string]bool{}
	}
	f.outside[folder] = true
	return nil
}
