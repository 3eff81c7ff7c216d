package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

func shelfOf(place string) (storage.Element, error) { return elements.Publishing(place) }

// ShownPlace is where results are published, for a person; an empty place is the
// results folder.
func ShownPlace(place string, folders folder.Layout) string {
	if place == "" {
		return folders.Results
	}
	return shownPlace(place)
}

func shownPlace(place string) string { return storage.Roots{}.Shown(place) }

// tidyElsewhere removes what earlier runs published at this place and this one does
// not make, or has it kept for good.
func (f *Results) tidyElsewhere(e *destination, c *state.Cores, keep bool) error {
	ctx, at := context.Background(), shownPlace(e.place)
	names := e.obsolete(written(c), false)
	if len(names) == 0 {
		return nil
	}
	if keep {
		for _, lfn := range names {
			now, _ := e.get(lfn)
			now.Kept = true
			if err := e.stand(ctx, now); err != nil {
				return err
			}
		}
		f.note(fmt.Sprintf("kept at %s, though this run does not make them: %s", at, ShortList(names)))
		return nil
	}
	var removed []string
	var failures []error
	for _, lfn := range names {
		left, err := e.remove(ctx, lfn)
		switch {
		case err != nil:
			failures = append(failures, err)
			f.note(fmt.Sprintf("%s: %v", left, err))
		case left != "":
			f.note(left)
		default:
			removed = append(removed, lfn)
		}
	}
	if len(removed) > 0 {
		f.note(fmt.Sprintf("removed from %s, since this run does not make them: %s; with --keep-results they stay", at,
			ShortList(removed)))
	}
	return errors.Join(failures...)
}

// RemovalsAt are the names of results at a place that would go at the end of a run
// that succeeds.
func RemovalsAt(
	ctx context.Context, records store.Store, folders folder.Layout, place string, c *state.Cores,
) (names []string, err error) {
	e := &destination{place: place, state: folders.ID, at: folders}
	if err := e.load(ctx, records); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(e.obsolete(written(c), false), func(lfn string) bool { return e.standings[lfn].Found }), nil
}

// cleanElsewhere removes what a state has published at any place, and tells what
// stays.
func cleanElsewhere(ctx context.Context, folders folder.Layout, element storage.Element, c *folder.Cleaned) error {
	records, err := folder.OpenRecords(ctx, folders.State)
	if err != nil {
		return folder.IgnoreMissing(err)
	}
	all, err := standingsIn(ctx, records, folders.ID)
	if err = errors.Join(err, records.Close()); err != nil {
		return err
	}
	for _, s := range all {
		e := &destination{
			place: folders.Absolute(s.Place), known: s.Place, state: folders.ID, files: element, at: folders,
			standings: map[string]standing{s.LFN: s},
			persist:   func(context.Context, ...taskqueue.Record) error { return nil }, // the records go with the state
		}
		if e.shelf, err = shelfOf(e.place); err != nil {
			return err
		}
		if _, err := e.mark(ctx, s.LFN); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		left, err := e.remove(ctx, s.LFN)
		switch {
		case err != nil:
			c.LeaveElsewhere(fmt.Sprintf("%s (%v)", left, err))
		case left != "":
			c.Left = append(c.Left, left)
		default:
			c.Removed = append(c.Removed, shownPlace(e.name(s.LFN)))
		}
	}
	return nil
}

// CleanFences removes what servers of a state have left at places of results so that those
// before them publish nothing more, and tells what stays. A server that was frozen since may
// then publish again, but only under names where nothing stands: it had nothing ready, and
// replaces only what it has put there itself.
func CleanFences(ctx context.Context, folders folder.Layout, c *folder.Cleaned) error {
	records, err := folder.OpenRecords(ctx, folders.State)
	if err != nil {
		return nil // CleanStores says what is not known
	}
	all, err := turnsIn(ctx, records, folders.ID)
	if err = errors.Join(err, records.Close()); err != nil {
		return err
	}
	for _, t := range all {
		e := &destination{place: folders.Absolute(t.Place), state: folders.ID}
		shelf, err := shelfOf(e.place)
		if err != nil {
			return err
		}
		renamer, ok := shelf.(storage.Renamer)
		if !ok || !t.left() {
			continue
		}
		at := e.under(e.workName())
		element := elementsOf(folders.Roots())
		if _, err := element.List(ctx, at); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := removeAll(ctx, element, renamer, at, 1); err != nil {
			c.LeaveElsewhere(fmt.Sprintf("%s: it could not be removed (%v)", shownPlace(at), err))
			continue
		}
		c.Removed = append(c.Removed, shownPlace(at))
	}
	return nil
}
