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

// removeOrphans removes outputs of attempts that were never committed: what
// pilots stored and could not report any more. It may run only when no pilot
// is left. needed tells whether a path is a version that is visible.
func removeOrphans(folder string, needed func(path string) bool) (int, error) {
	removed := 0
	root := folder + string(filepath.Separator) // also where the folder is a link to another disk
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || needed(path) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
		return nil
	})
	return removed, err
}
