package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fairway/internal/dispatch"
	"fairway/internal/fault"
	"fairway/internal/storage"
)

var beforeRemove = fault.New("remove.before")

// removeLoop removes physical files that nobody needs, until ctx ends. A file
// that cannot be removed stays, which is told once: it takes room but does no
// harm, and the next server tries again.
func (s *Server) removeLoop(ctx context.Context) {
	for {
		batch, err := s.out.remove.take(ctx, s.sched)
		if err != nil {
			return
		}
		_ = beforeRemove.Hit()
		for _, pfn := range batch {
			if err := s.removeFile(ctx, pfn); err != nil {
				s.log.Warn("a file that nobody needs could not be removed", "pfn", pfn, "error", err)
			}
		}
		err = s.inbox.deliver(ctx, func() *request {
			return &request{dispatch: each(batch, func(pfn string) dispatch.Input {
				return dispatch.Removed{PFN: pfn}
			})}
		})
		if err != nil {
			return
		}
	}
}

// removeFile removes a file of this workflow's own storage element. What stands
// elsewhere was not written by Fairway.
func (s *Server) removeFile(ctx context.Context, pfn string) error {
	path, err := storage.Path(pfn)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(path, s.storage+string(filepath.Separator)) {
		return errors.New("it is not in the storage of this workflow")
	}
	return s.element.Remove(ctx, pfn)
}

// orphansIn finds outputs of attempts that are no version that is visible: what
// pilots stored and could not report any more, or what earlier runs committed.
// It may be asked only when no pilot is left.
func orphansIn(folder string, needed paths) ([]string, error) {
	var orphans []string
	root := folder + string(filepath.Separator) // also where the folder is a link to another disk
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || needed[path] {
			return err
		}
		orphans = append(orphans, path)
		return nil
	})
	return orphans, err
}

func removeAll(files []string) error {
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
