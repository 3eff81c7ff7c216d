package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/logical"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
)

// PublishedTable has what this state put into the results folder: by LFN,
// publishedRecord. Nothing else there is ever removed or replaced.
const PublishedTable = "server_published"

// publishedRecord says which version stands under a name, by its PFN, and what
// the file was right after publication.
type publishedRecord struct {
	LFN  string `json:"lfn"`
	PFN  string `json:"pfn"`
	Kept bool   `json:"kept,omitempty"` // a person wants it to stay, though no run makes it any more
	state.Stamp
}

// published is what this state has published, by LFN.
type published struct {
	folders folder.Layout
	owner   taskqueue.RunID        // of the records
	files   func() storage.Element // reads what is stored at other places

	mu      sync.Mutex // guards records
	records map[string]publishedRecord
}

func loadPublished(
	ctx context.Context, source state.PartSource, folders folder.Layout, owner taskqueue.RunID,
) (*published, error) {
	s := &published{
		folders: folders, owner: owner, records: map[string]publishedRecord{},
		files: sync.OnceValue(func() storage.Element { return elementsOf(folders.Roots()) }),
	}
	records, err := state.LoadOf[publishedRecord](ctx, source, PublishedTable, owner)
	for _, r := range records {
		s.records[r.LFN] = r
	}
	return s, err
}

// Intended returns records of files that an earlier run had handed out for publication
// and of whose names nothing is recorded: its server may have been killed between the
// publication and its record. So what it left under these names is known as this
// state's own.
func Intended(
	ctx context.Context, source state.Source, handed []taskqueue.StoredFile,
) (records []taskqueue.Record, err error) {
	known, err := source.Load(ctx, PublishedTable)
	if err != nil {
		return nil, err
	}
	recorded := make(map[string]bool, len(known))
	for _, r := range known {
		recorded[r.Key] = true
	}
	for _, file := range handed {
		if recorded[file.File.LFN] {
			continue
		}
		recorded[file.File.LFN] = true
		record, err := (&publishedRecord{LFN: file.File.LFN, PFN: file.PFN}).record(0)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func (s *published) get(lfn string) (r publishedRecord, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok = s.records[lfn]
	return r, ok
}

func (s *published) put(r publishedRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.LFN] = r
}

func (s *published) forget(lfn string) taskqueue.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, lfn)
	return taskqueue.Record{Table: PublishedTable, Run: s.owner, Key: lfn}
}

func (r *publishedRecord) record(owner taskqueue.RunID) (taskqueue.Record, error) {
	return state.NewRecord(PublishedTable, owner, r.LFN, r)
}

// holds reports whether the stored file of a PFN stands under a name: another link
// to it or, on another file system, a copy. Where the record leaves that in
// doubt, the contents tell.
func (s *published) holds(results *beneath.Folder, lfn, pfn string) (bool, error) {
	name := archive.Clean(lfn)
	if _, err := results.Status(name); absent(err) { // as of most, and costs half of what follows
		return false, nil
	}
	there, err := results.Lstat(name)
	if err != nil {
		return false, folder.IgnoreMissing(err)
	}
	same, err := s.same(results, lfn, there, pfn)
	return same, folder.IgnoreMissing(err)
}

type storedFile struct {
	*beneath.Folder
	element string
	copied  bool
}

func (f *storedFile) Close() error {
	var err error
	if f.copied {
		err = f.Remove(f.element)
	}
	return errors.Join(err, f.Folder.Close())
}

// stored opens the folder that holds the file of a PFN. What is on a server is copied
// for a while.
func (s *published) stored(pfn string) (*storedFile, error) {
	if name, own := storage.StateName(pfn); own {
		root, err := beneath.Open(s.folders.Storage)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		return storedBeneath(root, name)
	}
	roots := s.folders.Roots()
	file, err := roots.Path(pfn)
	copied := !storage.IsLocal(pfn)
	if copied {
		file = filepath.Join(s.folders.State, disk.PartPrefix+rand.Text())
		_, err = s.files().Get(context.Background(), pfn, file)
	}
	if err != nil {
		return nil, err
	}
	in, err := beneath.Open(filepath.Dir(file))
	return &storedFile{Folder: in, element: filepath.Base(file), copied: copied}, err
}

func storedBeneath(root *beneath.Folder, name string) (*storedFile, error) {
	in, element, err := root.Parent(name)
	return &storedFile{Folder: in, element: element}, err
}

// absent reports whether nothing has a name, not even where something else,
// such as a link, has that of a folder above it.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || behindAnother(err)
}

// same reports whether the stored file of a PFN stands under a name. The error is
// [fs.ErrNotExist] where there is no such stored file: the loop that removes those
// that nobody needs may take it away at any moment, also during this call.
func (s *published) same(results *beneath.Folder, lfn string, there fs.FileInfo, pfn string) (bool, error) {
	if logical.IsFolder(lfn) {
		if !there.IsDir() {
			return false, nil
		}
		return s.sameFolder(results, lfn, pfn)
	}
	r, ok := s.get(lfn)
	asRecorded := ok && r.PFN == pfn && r.Stamp == state.StampOf(there)
	if asRecorded && !storage.IsLocal(pfn) {
		return true, nil
	}
	stored, err := s.stored(pfn)
	if err != nil {
		return false, err
	}
	defer func() { _ = stored.Close() }()
	original, err := stored.Lstat(stored.element)
	if err != nil {
		return false, err
	}
	switch {
	case os.SameFile(there, original):
		return true, nil
	case !there.Mode().IsRegular() || !original.Mode().IsRegular() || there.Size() != original.Size():
		return false, nil
	case asRecorded:
		return true, nil
	}
	return sameContents(results, lfn, stored)
}

func sameContents(results *beneath.Folder, lfn string, stored *storedFile) (bool, error) {
	a, err := results.Open(lfn)
	if err != nil {
		return false, err
	}
	defer func() { _ = a.Close() }()
	b, err := stored.Open(stored.element)
	if err != nil {
		return false, err
	}
	defer func() { _ = b.Close() }()
	return storage.Equal(a, b)
}

// isOurs reports whether what stands under a name was put there by this state and
// is as it was, so that it may be replaced or removed.
func (s *published) isOurs(results *beneath.Folder, lfn string) (bool, error) {
	there, err := results.Lstat(archive.Clean(lfn))
	if err != nil || !there.Mode().IsRegular() && !(logical.IsFolder(lfn) && there.IsDir()) {
		return false, folder.IgnoreMissing(err)
	}
	if r, ok := s.get(lfn); ok {
		now, err := s.stampAt(results, lfn)
		switch {
		case err != nil:
			return false, ignoreContent(folder.IgnoreMissing(err))
		case r.Stamp == now:
			return true, nil
		case r.Inode == now.Inode && !r.Like(now):
			return false, nil // it was written into
		}
		same, err := s.same(results, lfn, there, r.PFN)
		if errors.Is(err, fs.ErrNotExist) { // the other link was removed, which changed the inode
			same, err = r.Like(now), nil
		}
		if same || err != nil {
			return same, err
		}
	}
	return s.isStored(results, lfn, there)
}

// isStored finds out whether some version stands under a name. It is asked where
// a server was killed before it could record what it had published.
func (s *published) isStored(results *beneath.Folder, lfn string, there fs.FileInfo) (bool, error) {
	stored, err := beneath.Open(s.folders.Storage)
	if err != nil {
		return false, folder.IgnoreMissing(err)
	}
	elements, err := stored.List(path.Dir(lfn))
	if err := stored.Close(); err != nil {
		return false, err
	}
	if absent(err) {
		return false, nil
	}
	for _, element := range elements {
		name := path.Join(path.Dir(lfn), element)
		if of, ok := storedAs(name); !ok || of != lfn {
			continue
		}
		same, err := s.same(results, lfn, there, storage.Join(folder.StoragePrefix, name))
		if err = folder.IgnoreMissing(err); same || err != nil {
			return same, err
		}
	}
	return false, err
}

// remove takes a name away if what stands there is ours, and the folders that
// are empty without it.
func (s *published) remove(results *beneath.Folder, lfn string) (removed bool, err error) {
	ours, err := s.isOurs(results, lfn)
	if absent(err) || err == nil && !ours {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := withdraw(results, lfn); err != nil {
		return false, folder.IgnoreMissing(err)
	}
	return true, nil
}
