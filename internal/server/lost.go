package server

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/server/state"
	"fairway/internal/storage"
)

// A run begins with a look at the stored files that it needs, or may take from earlier
// runs: whether they are there, with their size. What they hold is found out by who
// reads them.

// lostFiles are those of some stored files that are not there or have another size.
// What cannot be looked at counts as there, since it may be so again.
func lostFiles(at storage.Places, stored iter.Seq[dispatch.StoredFile]) []dispatch.LostFile {
	var lost []dispatch.LostFile
	for file := range stored {
		if why := whyLost(at, &file); why != "" {
			lost = append(lost, dispatch.LostFile{File: file.File, PFN: file.PFN, Why: at.Shown(file.PFN) + " " + why})
		}
	}
	return lost
}

func whyLost(at storage.Places, file *dispatch.StoredFile) string {
	path, err := at.Path(file.PFN)
	if err != nil {
		return ""
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there"
	case err != nil:
		return ""
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case info.Size() != file.Size:
		return fmt.Sprintf("has %d bytes and should have %d", info.Size(), file.Size)
	}
	return ""
}

// lostOutputsOf are the outputs of a job that were stored and are lost.
func lostOutputsOf(at storage.Places, c *state.Cores, job *dispatch.JobView) []dispatch.LostFile {
	if job.State != dispatch.Done {
		return nil
	}
	return lostFiles(at, slices.Values(c.Dispatch.StoredBy(job.ID)))
}
