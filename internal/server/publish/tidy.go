package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage/elements"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// written is what the jobs of a run wrote, by LFN: the last version of each file.
func written(c *state.Cores) map[string]taskqueue.FileView {
	last := map[string]taskqueue.FileView{}
	for file := range c.Dispatch.Written(c.Run) {
		last[file.File.LFN] = file
	}
	return last
}

// obsolete are the names of what this state has published and these files, the
// last versions of a run, are not: in the order of the names. What a person wants
// to stay is among them if all is said.
func (s *published) obsolete(files map[string]taskqueue.FileView, all bool) (names []string) {
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
func (f *Results) unpublish(names []string) error {
	results, err := beneath.Open(f.folders.Results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = results.Close() }()
	var removed []string
	var records []taskqueue.Record
	var failures []error
	for _, lfn := range names {
		gone, err := f.results.remove(results, lfn)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if gone {
			removed = append(removed, lfn)
		}
		records = append(records, f.results.forget(lfn))
	}
	if len(removed) > 0 {
		f.note(fmt.Sprintf("removed from %s/, since this run does not make them: %s; with --keep-results they stay",
			folder.ResultsFolder, ShortList(removed)))
	}
	return errors.Join(append(failures, f.store.Apply(context.Background(), records))...)
}

func (f *Results) retain(names []string) error {
	var records []taskqueue.Record
	for _, lfn := range names {
		r, _ := f.results.get(lfn)
		r.Kept = true
		record, err := r.record(f.owner)
		if err != nil {
			return err
		}
		f.results.put(r)
		records = append(records, record)
	}
	if len(names) > 0 {
		f.note(fmt.Sprintf("kept in %s/, though this run does not make them: %s", folder.ResultsFolder, ShortList(names)))
	}
	return f.store.Apply(context.Background(), records)
}

// Tidy removes results of earlier runs that a run which has succeeded does not make,
// or has them kept for good. A person's own files stay.
func (f *Results) Tidy(c *state.Cores, keep bool) error {
	keep = keep || f.InputsGone
	var failures []error
	for _, e := range f.destinations() {
		failures = append(failures, f.tidyElsewhere(e, c, keep))
	}
	if f.elsewhere != nil {
		return errors.Join(failures...)
	}
	obsolete := f.results.obsolete(written(c), false)
	if keep {
		return errors.Join(append(failures, f.retain(obsolete))...)
	}
	return errors.Join(append(failures, f.unpublish(obsolete))...)
}

const namesListed = 4

// ShortList has the first names for a sentence, and how many more there are.
func ShortList(names []string) string {
	if more := len(names) - namesListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namesListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Clean removes what is recorded as published by a state and stands as it
// was, and tells of it.
func Clean(ctx context.Context, folders folder.Layout, c *folder.Cleaned) error {
	if err := cleanElsewhere(ctx, folders, elements.New(folders.Roots(), sched.Default().Sleep), c); err != nil {
		return err
	}
	s, err := publishedIn(ctx, folders)
	if err != nil {
		c.Left = append(c.Left, fmt.Sprintf("%s: what Fairway has put there is not known any more (%v)",
			folders.Results, err))
		return nil
	}
	results, err := beneath.Open(folders.Results)
	if err != nil {
		return folder.IgnoreMissing(err)
	}
	defer func() { _ = results.Close() }()
	left, failed := 0, map[string]bool{}
	for _, lfn := range s.obsolete(nil, true) {
		r, _ := s.get(lfn)
		gone, err := s.remove(results, lfn)
		switch {
		case err != nil:
			c.Leave(folders.Results, err)
			failed[lfn] = true
		case gone:
			c.Bytes += r.Size
		}
	}
	err = results.Walk(func(name string, _ fs.FileInfo) error {
		if !failed[name] {
			left++
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case left > 0:
		c.Left = append(c.Left, fmt.Sprintf("%s: files that Fairway has not put there, or that were changed since: %d",
			folders.Results, left))
	case os.Remove(folders.Results) == nil:
		c.Removed = append(c.Removed, folders.Results)
	}
	return nil
}

func publishedIn(ctx context.Context, folders folder.Layout) (*published, error) {
	records, err := folder.OpenRecords(ctx, folders.State)
	if errors.Is(err, fs.ErrNotExist) {
		return &published{folders: folders}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := loadPublished(ctx, records, folders, 0)
	return s, errors.Join(err, records.Close())
}

// Removals are the names of results that would go at the end of a run that succeeds.
func Removals(
	ctx context.Context, records store.Store, folders folder.Layout, c *state.Cores,
) (names []string, err error) {
	s, err := loadPublished(ctx, records, folders, 0)
	if err != nil {
		return nil, err
	}
	results, err := beneath.Open(folders.Results)
	if err != nil {
		return nil, folder.IgnoreMissing(err)
	}
	defer func() { _ = results.Close() }()
	for _, lfn := range s.obsolete(written(c), false) {
		if ours, err := s.isOurs(results, lfn); err == nil && ours {
			names = append(names, lfn)
		}
	}
	return names, nil
}
