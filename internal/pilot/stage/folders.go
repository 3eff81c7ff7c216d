package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/cache"
	"fairway/internal/disk"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// folders are the input folders of the attempts of a pilot. Each is unpacked once,
// beside the sandboxes, and its files are linked into the sandbox of each attempt
// that reads it: attempts share the contents, and each has folders of its own. It
// stays as long as an attempt uses it, or waits at this pilot to do so.
type folders struct {
	mu   sync.Mutex // guards what follows
	all  map[folderKey]*unpacked
	made int // names given
}

type folderKey struct {
	cache.Ref
	pfn string
}

// unpacked is a folder that is shared, or is being made by its first user.
type unpacked struct {
	key   folderKey
	done  chan struct{} // closed when it is there, or cannot be
	tree  *folderTree   // nil if it cannot be
	users int           // guarded by folders.mu
}

// unpackedName is the folder, in that of the pilot, that holds the unpacked ones.
const unpackedName = "unpacked"

// folderTree is a folder at a path, as it was when it was made.
type folderTree struct {
	path    string
	entries []archive.Entry
	infos   []fs.FileInfo // of the entries
}

func newFolderTree(path string, entries []archive.Entry) (*folderTree, error) {
	t := &folderTree{path: path, entries: entries, infos: make([]fs.FileInfo, len(entries))}
	for i, e := range entries {
		var err error
		if t.infos[i], err = os.Lstat(filepath.Join(path, e.Name)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// changed reports whether a file of the folder was written to. One that was replaced
// or moved away does no harm.
func (t *folderTree) changed() bool {
	for i, e := range t.entries {
		if e.Kind != archive.File {
			continue
		}
		now, err := os.Lstat(filepath.Join(t.path, e.Name))
		if err == nil && os.SameFile(now, t.infos[i]) && !sameState(now, t.infos[i]) {
			return true
		}
	}
	return false
}

// appear makes the folder stand at a path too, where link makes one file appear.
func (t *folderTree) appear(
	ctx context.Context, target string, link func(ctx context.Context, from, to string) error,
) error {
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	for _, e := range t.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch to := filepath.Join(target, e.Name); e.Kind {
		case archive.Folder:
			err = os.Mkdir(to, 0o755)
		case archive.Link:
			err = os.Symlink(e.Target, to)
		default:
			err = link(ctx, filepath.Join(t.path, e.Name), to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func linkFile(ctx context.Context, from, to string) error {
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
	if err == nil || outOfDisk(err) {
		return err
	}
	return copyFile(ctx, from, to)
}

func copyFile(ctx context.Context, from, to string) error {
	return copyWith(ctx, from, to, func(mode fs.FileMode) fs.FileMode { return mode&^0o222 | 0o400 })
}

func ownFile(ctx context.Context, from, to string) error {
	return copyWith(ctx, from, to, func(mode fs.FileMode) fs.FileMode { return mode | 0o600 })
}

func copyWith(ctx context.Context, from, to string, changed func(fs.FileMode) fs.FileMode) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = disk.CopyTo(ctx, f, to, changed(info.Mode().Perm()))
	if err == nil {
		err = os.Chtimes(to, time.Time{}, info.ModTime())
	}
	return err
}

func (in *Inputs) addFolder(i *input, target string) (err error) {
	if i.unpacked == nil {
		if i.unpacked, err = in.folderOf(i); err != nil {
			return err
		}
	}
	if p := in.attempt.Payload; i.LFN == p.GetContainer().GetImage() || i.LFN == p.GetEnvironmentFolder() {
		return nil // it is used where it is, see Unpacked
	}
	i.tree = i.unpacked.tree
	if !in.owned(i) {
		return i.tree.appear(in.attempt.Ctx, target, linkFile)
	}
	if i.access == wire.Access_ACCESS_COPY {
		return i.tree.appear(in.attempt.Ctx, target, ownFile)
	}
	if err = i.tree.appear(in.attempt.Ctx, target, copyFile); err == nil {
		i.tree, err = newFolderTree(target, i.tree.entries)
	}
	return err
}

// Unpacked is where an input that is a folder is, as all attempts of the pilot share it; empty
// where there is no such input.
func (in *Inputs) Unpacked(lfn string) string {
	for _, i := range in.files {
		if i.LFN == lfn && i.unpacked != nil {
			return i.unpacked.tree.path
		}
	}
	return ""
}

func (in *Inputs) folderOf(i *input) (*unpacked, error) {
	key := folderKey{i.Ref, i.pfn}
	for {
		u, mine := in.ar.folders.take(key)
		if mine {
			tree, err := in.unpack(i)
			in.ar.folders.finish(u, tree)
			if err != nil {
				return nil, err
			}
			return u, nil
		}
		_, err := sched.Receive(in.attempt.Ctx, in.ar.Sched, u.done)
		if errors.Is(err, sched.ErrChannelClosed) && u.tree != nil {
			i.hit = true
			return u, nil
		}
		in.ar.folders.release(u)
		if !errors.Is(err, sched.ErrChannelClosed) {
			return nil, err
		}
	}
}

func (f *folders) take(key folderKey) (u *unpacked, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u = f.all[key]; u == nil {
		u, mine = &unpacked{key: key, done: make(chan struct{})}, true
		if f.all == nil {
			f.all = map[folderKey]*unpacked{}
		}
		f.all[key] = u
	}
	u.users++
	return u, mine
}

func (f *folders) get(key folderKey) *unpacked {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.all[key]
	if u == nil || u.tree == nil {
		return nil
	}
	u.users++
	return u
}

// finish says that a folder is there or, without a tree, cannot be made: the next
// one who needs it tries again.
func (f *folders) finish(u *unpacked, tree *folderTree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u.tree = tree; tree == nil {
		u.users--
		delete(f.all, u.key)
	}
	close(u.done)
}

func (f *folders) release(u *unpacked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u.users--
}

// spoilt says that a folder was written to: whoever needs it next makes it anew.
func (f *folders) spoilt(u *unpacked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[u.key] == u {
		delete(f.all, u.key)
		f.all[folderKey{pfn: u.tree.path}] = u // so that it is removed
	}
}

func (f *folders) unused(awaited map[folderKey]bool) (unused []*unpacked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, u := range f.all {
		if u.users == 0 && u.tree != nil && !awaited[key] {
			unused = append(unused, u)
			delete(f.all, key)
		}
	}
	return unused
}

// HasFolders reports whether there are unpacked folders.
func (ar *Area) HasFolders() bool {
	ar.folders.mu.Lock()
	defer ar.folders.mu.Unlock()
	return len(ar.folders.all) > 0
}

// RemoveUnusedFolders removes the unpacked folders that no attempt uses, and that are not
// awaited.
func (ar *Area) RemoveUnusedFolders(awaited []*wire.InputFile) {
	keys := map[folderKey]bool{}
	for _, f := range awaited {
		keys[folderKey{RefOf(f.GetFile()), f.GetPfn()}] = true
	}
	for _, u := range ar.folders.unused(keys) {
		name := filepath.Join(unpackedName, filepath.Base(u.tree.path))
		if err := ar.Dir.Clear(name); err != nil {
			ar.Log.Warn("an unpacked folder could not be removed", "lfn", u.key.LFN, "error", err)
		}
	}
}

func (in *Inputs) unpack(i *input) (tree *folderTree, err error) {
	in.ar.folders.mu.Lock()
	in.ar.folders.made++
	name := filepath.Join(unpackedName, strconv.Itoa(in.ar.folders.made))
	in.ar.folders.mu.Unlock()
	for _, folder := range []string{unpackedName, name} {
		if err := in.ar.Dir.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	into, err := in.ar.Dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	var entries []archive.Entry
	path := filepath.Join(in.ar.Folder, name)
	switch {
	case i.madeByJob() || !storage.IsLocal(i.pfn):
		entries, err = in.unpackArchive(i, into, path+".zip")
	case in.isHere(i):
		entries, err = in.takeFolder(i, path)
	default:
		entries, err = in.fetchFolder(i, into, path+".zip")
	}
	if err == nil {
		err = in.ar.compareFolder(in.attempt.Ctx, i, path)
	}
	if err == nil {
		tree, err = newFolderTree(path, entries)
	}
	if err != nil {
		return nil, errors.Join(err, in.ar.Dir.Clear(name))
	}
	return tree, nil
}

// unpackArchive unpacks what a job has written. The archive is at a path of its own
// meanwhile.
func (in *Inputs) unpackArchive(i *input, into *beneath.Folder, path string) ([]archive.Entry, error) {
	defer func() { i.before = nil }()
	defer os.Remove(path)
	if err := in.provide(i, path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := archive.Open(f, i.before.Size())
	if err == nil {
		err = a.Unpack(in.attempt.Ctx, into, i.before.ModTime())
	}
	if errors.Is(err, archive.ErrForm) {
		err = &lostError{in.ar.lost(i, err.Error())}
	}
	if err != nil {
		return nil, err
	}
	if i.cached != nil { // what is needed of it is unpacked
		i.cached.Release()
		i.cached = nil
	}
	return a.Entries(), nil
}

// isHere reports whether a folder from outside is taken by its path: where the server is on
// this machine, and where the path leads to what the run took up.
func (in *Inputs) isHere(i *input) bool {
	if in.ar.Reach == nil {
		return true
	}
	source, err := in.ar.Roots.Path(i.pfn)
	if err == nil {
		_, err = in.listed(i, source)
	}
	return err == nil
}

func (in *Inputs) fetchFolder(i *input, into *beneath.Folder, path string) ([]archive.Entry, error) {
	packed := &input{Item: cache.Item{Ref: i.Ref}, pfn: served.Packed(i.pfn), ticket: i.ticket}
	entries, err := in.unpackArchive(packed, into, path)
	if err != nil {
		return nil, err
	}
	now, err := in.ar.Storage.Stat(served.WithTicket(in.attempt.Ctx, packed.pfn, packed.ticket), packed.pfn)
	if err == nil && now.Inode != i.Tag {
		err = &changedError{i.pfn}
	}
	return entries, err
}

func (in *Inputs) takeFolder(i *input, path string) ([]archive.Entry, error) {
	source, err := in.ar.Roots.Path(i.pfn)
	if err != nil {
		return nil, err
	}
	listing, err := in.listed(i, source)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	entries := make([]archive.Entry, len(listing))
	for at, found := range listing {
		entries[at] = found.Entry
	}
	from := &folderTree{path: source, entries: entries}
	appears := linkFile
	if i.known != (known{}) {
		appears = copyFile // what is written to the original after it was compared is not seen
	}
	if err := from.appear(in.attempt.Ctx, path, appears); err != nil {
		return nil, err
	}
	_, err = in.listed(i, source)
	return entries, err
}

func (in *Inputs) listed(i *input, source string) (archive.Listing, error) {
	info, err := os.Stat(source)
	if err == nil && !info.IsDir() {
		err = &changedError{source}
	}
	if err != nil {
		return nil, err
	}
	listing, err := archive.List(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if storage.FixedTag(listing.State()) != i.Tag {
		return nil, &changedError{source}
	}
	return listing, nil
}
