package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// blocked says that a name could not be given because a file stands in the place
// of a folder, or a folder in that of a file.
func blocked(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, fs.ErrExist)
}

// makeWay removes old results that stand in the way of a file: one in the place
// of a folder above it, or all that are in a folder in its own place. If anything
// else is there, nothing is removed, and the error names it.
func (p *publisher) makeWay(lfn string) error {
	var files, folders []string
	err := filepath.WalkDir(p.obstacle(lfn), func(path string, entry fs.DirEntry, err error) error {
		switch name, _ := filepath.Rel(p.results, path); {
		case err != nil:
			return ignoreMissing(err)
		case entry.IsDir():
			folders = append(folders, path)
		case !p.old(name):
			return fmt.Errorf("%s stands in its place and is not a result of an earlier run that may go: move it away", path)
		default:
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(folders)
	for _, path := range slices.Concat(files, folders) {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// obstacle is what keeps a result from standing under its name, or where that is
// to be.
func (p *publisher) obstacle(lfn string) string {
	obstacle := filepath.Join(p.results, lfn)
	for at := filepath.Dir(lfn); at != "."; at = filepath.Dir(at) {
		folder := filepath.Join(p.results, at)
		info, err := os.Stat(folder) // a link to a folder will do
		if _, there := os.Lstat(folder); there == nil && (err != nil || !info.IsDir()) {
			obstacle = folder
		}
	}
	return obstacle
}

// isOld says whether what stands in the results folder under a name is what an
// earlier run put there, and may go for a result of this one: this run has no
// such result, and the file can be had again. See also [Server.unpublish].
func (s *Server) isOld(ctx context.Context, lfn string) bool {
	if s.opened.run.InputsGone {
		return false
	}
	current := true
	err := s.look(ctx, func(c *cores) { current = written(c.dispatch)[lfn].Publish })
	return err == nil && !current && s.isStored(lfn)
}

// isStored says whether the result under a name is a file of the storage
// element, whichever run has put it there.
func (s *Server) isStored(lfn string) bool {
	folder := filepath.Join(s.storage, filepath.Dir(lfn))
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		path := filepath.Join(folder, entry.Name())
		if name, ok := s.storedAs(path); !ok || name != lfn {
			return false
		}
		same, err := sameFile(path, filepath.Join(s.results, lfn))
		return err == nil && same
	})
}
