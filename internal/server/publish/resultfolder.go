package publish

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/logical"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// A result that is a folder stands in the results folder unpacked: it shares
// nothing with its stored file.

func (p *publisher) unpackResult(results *beneath.Folder, b *taskqueue.StoredFile, temporary string) error {
	stored, err := p.published.openArchive(b.PFN)
	if err != nil {
		return err
	}
	defer func() { _ = stored.file.Close() }()
	if err := asWritten(io.NewSectionReader(stored.file, 0, stored.info.Size()), b); err != nil {
		return err
	}
	if err := results.Clear(temporary); err != nil {
		return err
	}
	if err := results.Mkdir(temporary, 0o777); err != nil {
		return err
	}
	into, err := results.Sub(temporary)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	err = stored.Unpack(context.Background(), into, stored.info.ModTime())
	if err == nil {
		err = syncAll(into)
	}
	return err
}

// syncAll brings to disk all that was written to the file system of a folder: one
// call for any number of files.
func syncAll(folder *beneath.Folder) error {
	f, err := os.Open(folder.Path("."))
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// replaceFolder gives the folder with a temporary name its own. An older version
// under that name is exchanged for it, so that there is one at any time where the
// file system can do that, and then removed.
func replaceFolder(results *beneath.Folder, temporary string, in *beneath.Folder, element string) error {
	from, to := results.Path(temporary), in.Path(element)
	if info, err := in.Lstat(element); err != nil || !info.IsDir() {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EXDEV) {
		old := temporary + ".old"
		if err = results.Clear(old); err == nil {
			err = os.Rename(to, results.Path(old))
		}
		if err == nil {
			err = os.Rename(from, to)
		}
		return errors.Join(err, results.Clear(old))
	}
	return errors.Join(err, results.Clear(temporary))
}

// storedArchive is an archive in storage that is open.
type storedArchive struct {
	*archive.Archive
	file *os.File
	info fs.FileInfo
}

func (s *published) openArchive(pfn string) (*storedArchive, error) {
	stored, err := s.stored(pfn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stored.Close() }()
	file, err := stored.Open(stored.element)
	if err != nil {
		return nil, err
	}
	a := &storedArchive{file: file}
	if a.info, err = file.Stat(); err == nil {
		a.Archive, err = archive.Open(file, a.info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stored.Name(stored.element), errors.Join(err, file.Close()))
	}
	return a, nil
}

// sameFolder is [published.same] for a folder.
func (s *published) sameFolder(results *beneath.Folder, lfn, pfn string) (bool, error) {
	stored, err := s.openArchive(pfn)
	if err != nil {
		return false, err
	}
	defer func() { _ = stored.file.Close() }()
	now, err := s.stampAt(results, lfn)
	if err != nil {
		return false, ignoreContent(err)
	}
	if r, ok := s.get(lfn); ok && r.PFN == pfn && r.Stamp == now {
		return true, nil
	}
	folder, err := results.Sub(archive.Clean(lfn))
	if err != nil {
		return false, err
	}
	defer func() { _ = folder.Close() }()
	return stored.Same(context.Background(), folder)
}

// ignoreContent is for folders that hold what no result does: they are not ours.
func ignoreContent(err error) error {
	if content := (*archive.ContentError)(nil); errors.As(err, &content) {
		return nil
	}
	return err
}

// stampAt is the stamp of what stands under a name: of a folder, it changes with
// all that the folder holds.
func (s *published) stampAt(results *beneath.Folder, lfn string) (state.Stamp, error) {
	info, err := results.Lstat(archive.Clean(lfn))
	if err != nil {
		return state.Stamp{}, err
	}
	if !logical.IsFolder(lfn) {
		return state.StampOf(info), nil
	}
	folder, err := results.Sub(archive.Clean(lfn))
	if err != nil {
		return state.Stamp{}, err
	}
	defer func() { _ = folder.Close() }()
	whole := state.Stamp{Inode: state.StampOf(info).Inode}
	sum := sha256.New()
	err = archive.Walk(folder, func(_ *beneath.Folder, _ string, e archive.Entry, info fs.FileInfo) error {
		now := state.StampOf(info)
		if e.Kind != archive.File {
			now = state.Stamp{Inode: now.Inode} // what is in a folder has stamps of its own
		}
		whole.Size += e.Size
		fmt.Fprintf(sum, "%c %t %q %q %d %d %d\n", e.Kind, e.Executable, e.Name, e.Target, now.Size, now.Modified, now.Inode)
		return nil
	})
	whole.Tree = binary.LittleEndian.Uint64(sum.Sum(nil))
	return whole, err
}

// withdraw removes what stands under a name, and the folders that are empty
// without it.
func withdraw(results *beneath.Folder, lfn string) error {
	name := archive.Clean(lfn)
	var err error
	if logical.IsFolder(lfn) {
		err = results.RemoveAll(name)
	} else {
		err = results.Remove(name)
	}
	if err != nil {
		return err
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if results.RemoveFolder(folder) != nil {
			break // it holds something else
		}
	}
	return nil
}
