package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
)

// blocked reports whether a name could not be given because something else
// stands in the place of a folder, or a folder in that of a file.
func blocked(err error) bool {
	return errors.Is(err, unix.EISDIR) || errors.Is(err, fs.ErrExist) || behindAnother(err)
}

// behindAnother reports whether what should be a folder is something else.
func behindAnother(err error) bool {
	var kind *beneath.KindError
	return errors.As(err, &kind) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, beneath.ErrOutside)
}

// makeWay removes old results that stand in the way of a file: one in the place
// of a folder above it, or all that are in a folder in its own place. If anything
// else is there, nothing is removed, and the error names it.
func (p *publisher) makeWay(results *beneath.Folder, lfn string) error {
	var files, folders, whole []string
	var look func(name string) error
	look = func(name string) error {
		info, err := results.Lstat(name)
		switch {
		case err != nil:
			return folder.IgnoreMissing(err)
		case info.IsDir() && p.oldFolder(name):
			whole = append(whole, name)
			return nil
		case !info.IsDir() && !p.old(name):
			return fmt.Errorf("%s stands in its place and is not a result of an earlier run that may go: move it away",
				results.Name(name))
		case !info.IsDir():
			files = append(files, name)
			return nil
		}
		folders = append(folders, name)
		elements, err := results.List(name)
		for _, element := range elements {
			err = errors.Join(err, look(path.Join(name, element)))
		}
		return err
	}
	if err := look(obstacle(results, lfn)); err != nil {
		return err
	}
	for _, name := range files {
		if err := results.Remove(name); err != nil {
			return err
		}
	}
	for _, name := range whole {
		if err := results.RemoveAll(name); err != nil {
			return err
		}
	}
	slices.Reverse(folders)
	for _, name := range folders {
		if err := results.RemoveFolder(name); err != nil {
			return err
		}
	}
	return nil
}

// obstacle is what keeps a result from standing under its name, or where that is
// to be.
func obstacle(results *beneath.Folder, lfn string) string {
	obstacle := path.Clean(lfn)
	for at := path.Dir(obstacle); at != "."; at = path.Dir(at) {
		if info, err := results.Lstat(at); err == nil && !info.IsDir() {
			obstacle = at
		}
	}
	return obstacle
}

// isOld reports whether what stands in the results folder under a name is what an
// earlier run put there, and may go for a result of this one: this run has no
// such result, and the file can be had again. See also [Results.Tidy].
func (f *Results) isOld(ctx context.Context, lfn string) bool {
	if f.InputsGone {
		return false
	}
	if r, ok := f.results.get(lfn); ok && r.Kept {
		return false
	}
	current := true
	err := f.inbox.Query(ctx, func(c *state.Cores) { current = c.Dispatch.Publishes(c.Run, lfn) })
	if err != nil || current {
		return false
	}
	results, err := beneath.Open(f.folders.Results)
	if err != nil {
		return false
	}
	defer func() { _ = results.Close() }()
	ours, err := f.results.isOurs(results, lfn)
	return err == nil && ours
}
