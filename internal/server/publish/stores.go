package publish

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Outputs may be stored at another place than the folder of the state: on any element,
// in a folder there that bears the identity of the state. Each such place is recorded
// before anything is stored there, so that what is left can be found, and forgotten when
// nothing is left.

// storeTable has the places where this state stores outputs: by the beginning of PFNs.
const storeTable = "server_stores"

type storeRecord struct{ Prefix string }

// StoreAt has pilots store outputs at a place, as ParsePlace gives it; an empty one is
// the folder of the state. A server is asked to store something if the place is new. It
// is called before Run.
func (f *Storage) StoreAt(ctx context.Context, place string) error {
	known, err := storesIn(ctx, f.store)
	if err != nil {
		return err
	}
	if err := outsideState(&f.folders, place); err != nil {
		return err
	}
	prefix := f.folders.StorageAt(place)
	f.OtherPlace = prefix != folder.StoragePrefix && !slices.Contains(known, prefix)
	if f.OtherPlace {
		if err := f.addStore(ctx, prefix, known); err != nil {
			return err
		}
	}
	f.stores = firstOf(prefix, append(known, folder.StoragePrefix))
	f.siteStores = map[string][]string{}
	return nil
}

// StoreOf has the pilots of a site store outputs at a place of their own, as StoreAt does. catalog gives results
// their PFNs there, by "/" and their names; nil: they have none. It is called after that.
func (f *Storage) StoreOf(
	ctx context.Context, site, place string, catalog func(name string) (pfn string, err error),
) error {
	if err := errors.Join(outsideState(&f.folders, place), CheckWritable(place)); err != nil {
		return err
	}
	prefix := f.folders.StorageAt(place)
	if !slices.Contains(f.stores, prefix) {
		if err := f.addStore(ctx, prefix, f.stores); err != nil {
			return err
		}
		f.stores = append(f.stores, prefix)
	}
	if catalog != nil && !slices.ContainsFunc(f.catalogues, func(c catalogued) bool { return c.prefix == prefix }) {
		f.catalogues = append(f.catalogues, catalogued{prefix, place, catalog})
	}
	f.siteStores[site] = []string{prefix}
	for name, own := range f.siteStores {
		f.siteStores[name] = firstOf(own[0], f.stores)
	}
	return nil
}

// firstOf are prefixes without repetition, one of them first.
func firstOf(first string, all []string) []string {
	prefixes := []string{first}
	for _, other := range all {
		if !slices.Contains(prefixes, other) {
			prefixes = append(prefixes, other)
		}
	}
	return prefixes
}

// addStore records a place. If it is of no use, it is no place of this state.
func (f *Storage) addStore(ctx context.Context, prefix string, known []string) error {
	if _, err := shelfOf(f.folders.Absolute(prefix)); err != nil {
		return err
	}
	if err := f.checkMoved(prefix, known); err != nil {
		return err
	}
	if err := CheckWritable(f.folders.Absolute(strings.TrimSuffix(prefix, "/"))); err != nil {
		return err
	}
	record, err := state.NewRecord(storeTable, 0, prefix, storeRecord{prefix})
	if err == nil {
		err = f.store.Apply(ctx, []taskqueue.Record{record})
	}
	if err != nil || storage.IsLocal(prefix) {
		return err
	}
	if err := f.tryStore(ctx, storage.Join(prefix, storage.MarkName+"-"+rand.Text())); err != nil {
		return errors.Join(fmt.Errorf("nothing can be stored at %s: %w", shownPlace(strings.TrimSuffix(prefix, "/")), err),
			f.forgetStore(context.WithoutCancel(ctx), prefix))
	}
	return nil
}

// outsideState refuses a place in the folder of the state, where other files have their
// names.
func outsideState(folders *folder.Layout, place string) error {
	name, ok := strings.CutPrefix(folders.Recorded(place), storage.FolderScheme+":")
	if ok && (name == folder.StateFolder || strings.HasPrefix(name, folder.StateFolder+"/")) {
		return fmt.Errorf("%s is in %s, which holds the state: name another place", shownPlace(place), folder.StateFolder)
	}
	return nil
}

func (f *Storage) tryStore(ctx context.Context, pfn string) error {
	ctx, cancel := context.WithTimeout(ctx, LookTime)
	defer cancel()
	text := filepath.Join(f.folders.State, disk.PartPrefix+rand.Text())
	if err := os.WriteFile(text, []byte("Fairway looks whether it can store here.\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(text) }()
	if err := f.element.Put(ctx, text, pfn); err != nil {
		return err
	}
	_ = f.element.Remove(ctx, pfn) // fairway clean removes what stays
	return nil
}

// checkMoved refuses a place that holds what this state has stored at another one, which
// is there no more: the paths of what is stored are recorded.
func (f *Storage) checkMoved(prefix string, known []string) error {
	if !storage.IsLocal(prefix) || !f.isThere(prefix) {
		return nil
	}
	for _, other := range known {
		if storage.IsLocal(other) && f.folders.Owns(other) && !f.isThere(other) {
			from, to := filepath.Dir(f.pathOf(other)), filepath.Dir(f.pathOf(prefix))
			return fmt.Errorf("%s holds what this workflow has stored at %s, which is there no more: move it back, or make %s "+
				"a link to %s", to, from, from, to)
		}
	}
	return nil
}

func (f *Storage) pathOf(prefix string) string {
	path, _ := f.folders.Roots().Path(strings.TrimSuffix(prefix, "/"))
	return path
}

func (f *Storage) isThere(prefix string) bool {
	info, err := os.Stat(f.pathOf(prefix))
	return err == nil && info.IsDir()
}

func (f *Storage) forgetStore(ctx context.Context, prefix string) error {
	return f.store.Apply(ctx, []taskqueue.Record{{Table: storeTable, Key: prefix}})
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
			return fmt.Errorf("nothing can be stored there: %w; name a folder that you may write to",
				&fs.PathError{Op: "write", Path: at, Err: err})
		}
		return nil
	}
}

// Stores is how the PFNs begin under which outputs of this state may be: first those of
// this run.
func (f *Storage) Stores() []string { return f.stores }

// StoresOf are the same for the pilots of a site: first the place at which they store outputs now.
func (f *Storage) StoresOf(site string) []string {
	if own, ok := f.siteStores[site]; ok {
		return own
	}
	return f.stores
}

func storesIn(ctx context.Context, source state.Source) (prefixes []string, err error) {
	records, err := source.Load(ctx, storeTable)
	for _, r := range records {
		prefixes = append(prefixes, r.Key)
	}
	return prefixes, err
}

func elementsOf(at storage.Roots) storage.Element {
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

// isNowhere reports whether an error means that there is no such place, nor can be.
func isNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// clearStore removes files of a folder of an element, and the folders in it that are
// empty then. It returns how many files are left.
func clearStore(
	ctx context.Context, element storage.Element, pfn string, goes func(pfn string) bool,
) (left int, err error) {
	entries, err := element.List(ctx, pfn)
	if isNowhere(err) {
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
	if err = summed(append(failures, err)); err != nil || left > 0 {
		return left, err
	}
	if shelf, err := shelfOf(pfn); err != nil {
		return 0, err
	} else if shelf, ok := shelf.(storage.Renamer); ok {
		return 0, shelf.RemoveFolder(ctx, pfn)
	}
	return 0, nil
}

// failedRemovals stands for errors of many files, mostly of one kind.
type failedRemovals struct {
	first error
	count int
}

func (f *failedRemovals) Error() string {
	if f.count == 1 {
		return f.first.Error()
	}
	return fmt.Sprintf("%v, and %d more", f.first, f.count-1)
}

func (f *failedRemovals) Unwrap() error { return f.first }

// summed are errors as one, or nil: a person reads the first and the number.
func summed(failures []error) error {
	var all failedRemovals
	for _, err := range failures {
		if more, ok := errors.AsType[*failedRemovals](err); ok {
			all.first, all.count = cmp.Or(all.first, more.first), all.count+more.count
		} else if err != nil {
			all.first, all.count = cmp.Or(all.first, err), all.count+1
		}
	}
	if all.count == 0 {
		return nil
	}
	return &all
}

// sweepStores removes what is not needed from the places where outputs are stored, and
// forgets those where nothing is. Those of the state that this one is a copy of are only
// read. A place may be known by several prefixes, so names tell what is needed.
func (f *Storage) sweepStores(ctx context.Context, needed Stored) error {
	names := map[string]bool{}
	for pfn := range needed {
		if name, ok := f.folders.StoredName(pfn); ok {
			names[name] = true
		}
	}
	var failures []error
	for _, prefix := range f.stores {
		if prefix == folder.StoragePrefix || !f.folders.Owns(prefix) {
			continue
		}
		left, err := clearStore(ctx, f.prompt, f.folders.Absolute(strings.TrimSuffix(prefix, "/")), func(pfn string) bool {
			name, _ := f.folders.StoredName(canonical(pfn))
			return isStoredName(name) && !names[name]
		})
		if err == nil && left == 0 {
			err = f.forgetStore(ctx, prefix)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// CleanStores removes what a state has stored on elements, and tells what stays.
func CleanStores(ctx context.Context, folders folder.Layout, c *folder.Cleaned) error {
	records, err := folder.OpenRecords(ctx, folders.State)
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
	cleaned := map[string]bool{} // by path without links: two prefixes may be of one folder
	for _, prefix := range prefixes {
		at := folders.Absolute(strings.TrimSuffix(prefix, "/"))
		if !folders.Owns(prefix) { // of the state that this one is a copy of
			continue
		}
		if path, err := storage.Path(at); err == nil && storage.IsLocal(at) {
			if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && cleaned[real] {
				continue
			} else if err == nil {
				cleaned[real] = true
			}
		}
		element := elementsOf(folders.Roots())
		if _, err := element.List(ctx, at); isNowhere(err) {
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
