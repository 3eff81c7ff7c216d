package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"fairway/internal/dispatch"
	"fairway/internal/storage"
)

// written is what the jobs of a run wrote, by LFN: the last version of each file.
func written(core *dispatch.Core) map[string]dispatch.FileView {
	last := map[string]dispatch.FileView{}
	for job := range core.Jobs(0) {
		detail, _ := core.Detail(job.ID)
		for _, file := range detail.Writes {
			if before, ok := last[file.File.LFN]; !file.Pattern && (!ok || before.File.Version < file.File.Version) {
				last[file.File.LFN] = file
			}
		}
	}
	return last
}

// restore publishes anew what was published and no longer stands in the results
// folder as it was: somebody has removed or replaced it. A file that another
// version of this run will replace is left to that.
func (s *Server) restore(c *cores) {
	for _, file := range written(c.dispatch) {
		if !file.Publish || !file.Published || file.PFN == "" || s.stands(file) {
			continue
		}
		s.end.owed.publish[file.File] = true
		s.out.publish.put(dispatch.Publish{File: file.File, PFN: file.PFN, Size: file.Size})
	}
}

// stands says whether a file is in the results folder as it was published. One
// that cannot be looked at is tried to be published, which tells why.
func (s *Server) stands(file dispatch.FileView) bool {
	path, err := storage.Path(file.PFN)
	if err != nil {
		return true // nothing that this server published
	}
	same, err := sameFile(path, filepath.Join(s.results, file.File.LFN))
	return err == nil && same
}

// unpublish removes the plain names of stored files that are no results of this
// run: those of earlier runs, by their paths in the storage element, and those
// that are not to be published any more. What a person has put in the place of
// one stays. It comes before the stored files are removed.
func (s *Server) unpublish(files map[string]dispatch.FileView, orphans []string) error {
	var failures []error
	for _, path := range orphans {
		if lfn, ok := s.storedAs(path); ok && !files[lfn].Publish {
			failures = append(failures, s.unpublishFile(lfn, path))
		}
	}
	for lfn, file := range files {
		if path, err := storage.Path(file.PFN); err == nil && !file.Publish {
			failures = append(failures, s.unpublishFile(lfn, path))
		}
	}
	return errors.Join(failures...)
}

// unpublishFile removes a name, and the folders that are empty without it.
func (s *Server) unpublishFile(lfn, path string) error {
	target := filepath.Join(s.results, lfn)
	if same, err := sameFile(path, target); err != nil || !same {
		return ignoreMissing(err)
	}
	if err := os.Remove(target); err != nil {
		return ignoreMissing(err)
	}
	for folder := filepath.Dir(target); folder != s.results; folder = filepath.Dir(folder) {
		if os.Remove(folder) != nil {
			break // it holds something else
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// attemptSuffix is what pilots append to an LFN for the name of a stored file.
var attemptSuffix = regexp.MustCompile(`\.v[0-9]+\.a[0-9]+$`)

// storedAs is the LFN of a stored file.
func (s *Server) storedAs(path string) (lfn string, ok bool) {
	name, err := filepath.Rel(s.storage, path)
	if err != nil {
		return "", false
	}
	at := attemptSuffix.FindStringIndex(name)
	if at == nil {
		return "", false
	}
	return name[:at[0]], true
}
