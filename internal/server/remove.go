package server

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/dispatch"
	"fairway/internal/fault"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
)

var beforeRemove = fault.New("remove.before")

// removeLoop removes physical files that nobody needs, until ctx ends. A file
// that cannot be removed stays, which is told once: it takes room but does no
// harm, and the next server tries again.
func (s *Server) removeLoop(ctx context.Context) {
	for {
		batch, err := s.toRemove.Take(ctx, s.sched)
		if err != nil {
			return
		}
		_ = beforeRemove.Hit()
		for _, pfn := range batch {
			if err := s.removeFile(ctx, pfn); err != nil {
				s.log.Warn("a file that nobody needs could not be removed", "pfn", pfn, "error", err)
			}
		}
		err = s.inbox.Deliver(ctx, func() *loop.Request {
			return &loop.Request{Dispatch: convert.Each(batch, func(pfn string) dispatch.Input {
				return dispatch.Removed{PFN: pfn}
			})}
		})
		if err != nil {
			return
		}
	}
}

// removeFile removes a file of this state's own storage element. What stands
// elsewhere was not written by it.
func (s *Server) removeFile(ctx context.Context, pfn string) error {
	if _, ours := storage.StateName(pfn); !ours {
		return errors.New("it is not in the storage of this workflow")
	}
	return s.element.Remove(ctx, pfn)
}

// sweep removes stored files of this state that are not needed: what pilots
// stored and could not report any more, or what earlier runs committed. Nothing
// else in the storage element is touched. It may be done only when no pilot is
// left.
func (s *Server) sweep(needed names) error {
	stored, err := beneath.Open(s.folders.Storage)
	if err != nil {
		return folder.IgnoreMissing(err)
	}
	defer func() { _ = stored.Close() }()
	var failures []error
	err = stored.Walk(func(name string, info fs.FileInfo) error {
		_, ours := storedAs(name)
		ours = ours || strings.HasPrefix(path.Base(name), disk.PartPrefix)
		if ours && !needed[name] && info.Mode().IsRegular() {
			failures = append(failures, stored.Remove(name))
		}
		return nil
	})
	return errors.Join(append(failures, err)...)
}
