package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
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
// version of this run will replace is left to that, and so is one that is lost.
func (s *Server) restore(c *state.Cores, lost []dispatch.LostFile) (files []dispatch.Publish) {
	gone := make(map[string]bool, len(lost))
	for _, file := range lost {
		gone[file.PFN] = true
	}
	for _, file := range written(c.Dispatch) {
		if !file.Publish || !file.Published || file.PFN == "" || gone[file.PFN] || s.stands(file) {
			continue
		}
		files = append(files, dispatch.Publish{File: file.File, PFN: file.PFN, Size: file.Size})
	}
	return files
}

// stands says whether a file is in the results folder as it was published. One
// that cannot be looked at is tried to be published, which tells why.
func (s *Server) stands(file dispatch.FileView) bool {
	same, err := s.standing.holds(file.File.LFN, file.PFN)
	return err == nil && same
}

// obsolete are the names of what this state has published and these files, the
// last versions of a run, are not: in the order of the names. What a person wants
// to stay is among them if all is said.
func (s *standing) obsolete(files map[string]dispatch.FileView, all bool) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lfn := range slices.Sorted(maps.Keys(s.records)) {
		if (all || !s.records[lfn].Kept) && !files[lfn].Publish {
			names = append(names, lfn)
		}
	}
	return names
}

// unpublish removes what earlier runs published and this one does not. What a
// person has put in the place of one stays. It comes before the stored files are
// removed.
func (s *Server) unpublish(names []string) error {
	results, err := beneath.Open(s.folders.Results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = results.Close() }()
	var removed []string
	var records []dispatch.Record
	var failures []error
	for _, lfn := range names {
		gone, err := s.standing.remove(results, lfn)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if gone {
			removed = append(removed, lfn)
		}
		records = append(records, s.standing.forget(lfn))
	}
	if len(removed) > 0 {
		s.loop.Ending.Note(fmt.Sprintf("removed from %s/, since this run does not make them: %s; with --keep-results they stay", folder.ResultsFolder, shortList(removed)))
	}
	return errors.Join(append(failures, s.opened.store.Apply(context.Background(), records))...)
}

// keepResults has what earlier runs published stay, whatever later runs make.
func (s *Server) keepResults(names []string) error {
	var records []dispatch.Record
	for _, lfn := range names {
		r, _ := s.standing.get(lfn)
		r.Kept = true
		record, err := r.record()
		if err != nil {
			return err
		}
		s.standing.put(r)
		records = append(records, record)
	}
	if len(names) > 0 {
		s.loop.Ending.Note(fmt.Sprintf("kept in %s/, though this run does not make them: %s", folder.ResultsFolder, shortList(names)))
	}
	return s.opened.store.Apply(context.Background(), records)
}

// namesListed bounds the names in one sentence.
const namesListed = 4

func shortList(names []string) string {
	if more := len(names) - namesListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namesListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// attemptSuffix is what pilots append to an LFN for the name of a stored file.
var attemptSuffix = regexp.MustCompile(`\.v[0-9]+\.a[0-9]+$`)

// storedAs is the LFN of the file of a name in the storage element.
func storedAs(name string) (lfn string, ok bool) {
	at := attemptSuffix.FindStringIndex(name)
	if at == nil {
		return "", false
	}
	return name[:at[0]], true
}
