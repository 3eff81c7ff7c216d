package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/store"
	"fairway/sched"
)

// Outputs may be stored at another place than the folder of the state: on any element,
// in a folder there that bears the identity of the state. Each such place is recorded
// before anything is stored there, so that what is left can be found.

// storeTable has the places where this state stores outputs: by the beginning of PFNs.
const storeTable = "server_stores"

type storeRecord struct{ Prefix string }

// StoreAt has pilots store outputs at a place, as ParsePlace gives it; an empty one is
// the folder of the state. It is called before Run.
func (f *Files) StoreAt(ctx context.Context, place string) error {
	known, err := storesIn(ctx, f.store)
	if err != nil {
		return err
	}
	prefix := f.folders.StorageAt(place)
	if place != "" && !slices.Contains(known, prefix) {
		if _, err := shelfOf(place); err != nil {
			return err
		}
		record, err := state.NewRecord(storeTable, 0, prefix, storeRecord{prefix})
		if err != nil {
			return err
		}
		if err := f.store.Apply(ctx, []dispatch.Record{record}); err != nil {
			return err
		}
	}
	f.OtherPlace = prefix != folder.StoragePrefix && !slices.Contains(known, prefix)
	f.stores = []string{prefix}
	for _, other := range append(known, folder.StoragePrefix) {
		if !slices.Contains(f.stores, other) {
			f.stores = append(f.stores, other)
		}
	}
	return nil
}

// CheckWritable returns an error if a place, as ParsePlace gives it, is a folder that could
// not be written to or made. It makes nothing, and asks no server.
func CheckWritable(place string) error {
	if place == "" || !storage.IsLocal(place) {
		return nil
	}
	folder, err := storage.Path(place)
	if err != nil {
		return err
	}
	for at := folder; ; at = filepath.Dir(at) {
		_, named := os.Lstat(at)
		info, err := os.Stat(at)
		switch {
		case errors.Is(named, fs.ErrNotExist) && at != filepath.Dir(at):
			continue // it would be made
		case named == nil && errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a link to nothing; name a folder", at)
		case err != nil:
			return fmt.Errorf("nothing can be stored there: %w", err)
		case !info.IsDir():
			return fmt.Errorf("%s is no folder; name a folder", at)
		}
		if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("nothing can be stored there: %w; name a folder that you may write to", &fs.PathError{Op: "write", Path: at, Err: err})
		}
		return nil
	}
}

// Stores is how the PFNs begin under which outputs of this state may be: first those of
// this run.
func (f *Files) Stores() []string { return f.stores }

func storesIn(ctx context.Context, source state.Source) (prefixes []string, err error) {
	records, err := source.Load(ctx, storeTable)
	for _, r := range records {
		prefixes = append(prefixes, r.Key)
	}
	return prefixes, err
}

// elementsOf are all elements, with the credentials of the user.
func elementsOf(at storage.Places) storage.Element {
	return elements.New(at, sched.Default().Sleep)
}

// canonical is a PFN without the freedom that URLs leave to escape characters or not.
func canonical(pfn string) string {
	if plain, err := url.PathUnescape(pfn); err == nil && storage.IsEscaped(pfn) {
		return plain
	}
	return pfn
}

// isStoredName reports whether a name, in a folder that bears the identity of the
// state, is one that Fairway gives. Numbers of attempts begin behind 1<<32, so they tell
// its names from those that people give by the same form, as in notes.v1.a7.
func isStoredName(name string) bool {
	base := path.Base(name)
	if at := attemptSuffix.FindStringSubmatch(base); at != nil {
		attempt, err := strconv.ParseUint(at[1], 10, 64)
		return err == nil && attempt>>32 > 0
	}
	return strings.HasPrefix(base, storage.UnfinishedPrefix) || strings.HasPrefix(base, disk.PartPrefix)
}

// clearStore removes files of a folder of an element, and the folders in it that are
// empty then. It returns how many files are left.
func clearStore(ctx context.Context, element storage.Element, pfn string, goes func(pfn string) bool) (left int, err error) {
	entries, err := element.List(ctx, pfn)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var failures []error
	for _, entry := range entries {
		name := storage.Join(pfn, entry.Name)
		switch {
		case entry.Folder:
			more, err := clearStore(ctx, element, name, goes)
			left, failures = left+more, append(failures, err)
		case goes(name):
			failures = append(failures, element.Remove(ctx, name))
		default:
			left++
		}
	}
	if err = errors.Join(append(failures, err)...); err != nil || left > 0 {
		return left, err
	}
	if shelf, err := shelfOf(pfn); err != nil {
		return 0, err
	} else if shelf, ok := shelf.(storage.Renamer); ok {
		return 0, shelf.RemoveFolder(ctx, pfn)
	}
	return 0, nil
}

// sweepStores removes what is not needed from the places where outputs are stored. Those
// of the state that this one is a copy of are only read.
func (f *Files) sweepStores(ctx context.Context, needed Stored) error {
	var failures []error
	for _, prefix := range f.stores {
		if prefix == folder.StoragePrefix || !f.folders.Owns(prefix) {
			continue
		}
		_, err := clearStore(ctx, f.prompt, strings.TrimSuffix(prefix, "/"), func(pfn string) bool {
			return isStoredName(canonical(pfn)) && !needed[canonical(pfn)]
		})
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// CleanStores removes what a state has stored on elements, and tells what stays.
func CleanStores(ctx context.Context, folders folder.Layout, c *folder.Cleaned) error {
	records, err := store.OpenSQLite(filepath.Join(folders.State, folder.StoreFile), store.ReadOnly)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Left = append(c.Left, fmt.Sprintf("what Fairway has stored on other elements is not known any more (%v)", err))
		}
		return nil
	}
	prefixes, err := storesIn(ctx, records)
	if err = errors.Join(err, records.Close()); err != nil {
		return err
	}
	for _, prefix := range prefixes {
		at := strings.TrimSuffix(prefix, "/")
		if !folders.Owns(prefix) { // of the state that this one is a copy of
			continue
		}
		element := elementsOf(folders.Places())
		if _, err := element.List(ctx, at); errors.Is(err, fs.ErrNotExist) {
			if storage.IsLocal(at) {
				c.Left = append(c.Left, shownPlace(at)+": it is not there; if somebody has moved it, remove it where it is")
			}
			continue
		}
		left, err := clearStore(ctx, element, at, func(pfn string) bool {
			return isStoredName(canonical(pfn)) || strings.HasPrefix(path.Base(pfn), storage.MarkName)
		})
		switch {
		case err != nil:
			c.LeaveElsewhere(fmt.Sprintf("%s (%v)", shownPlace(at), err))
		case left > 0:
			c.Left = append(c.Left, fmt.Sprintf("%s: files that Fairway has not put there: %d", shownPlace(at), left))
		default:
			c.Removed = append(c.Removed, shownPlace(at))
		}
	}
	return nil
}
