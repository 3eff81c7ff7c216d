package server

import (
	"context"
	"fmt"
	"io"
	"os"

	"fairway/internal/archive"
	"fairway/internal/disk"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
)

// inputFolders adds to an element the folders from outside, as archives, for pilots that
// do not see them: under the names that served.Packed gives. The inode of one is the tag
// by which the run knows the folder.
type inputFolders struct {
	storage.Element
	roots storage.Roots
	// unfinished is a folder for archives on their way. It is made when it is needed.
	unfinished string
}

// Open is part of storage.Element.
func (e inputFolders) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	folder, ok := served.Unpacked(pfn)
	if !ok {
		return e.Element.Open(ctx, pfn)
	}
	path, listing, err := e.list(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(e.unfinished, 0o700); err != nil {
		return nil, err
	}
	out, err := disk.CreateUnnamed(e.unfinished, 0, 0o600)
	if err != nil {
		return nil, err
	}
	err = archive.PackListing(ctx, out.File, path, listing)
	if err == nil {
		err = e.unchanged(folder, listing)
	}
	var size int64
	if err == nil {
		size, err = out.Seek(0, io.SeekEnd)
	}
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return &packedFolder{out, storage.Info{Size: size, Inode: storage.FixedTag(listing.State())}}, nil
}

// Stat is part of storage.Element.
func (e inputFolders) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	folder, ok := served.Unpacked(pfn)
	if !ok {
		return e.Element.Stat(ctx, pfn)
	}
	_, listing, err := e.list(folder)
	return storage.Info{Size: -1, Inode: storage.FixedTag(listing.State())}, err
}

func (e inputFolders) list(pfn string) (path string, listing archive.Listing, err error) {
	if path, err = e.roots.Path(pfn); err != nil {
		return "", nil, err
	}
	if listing, err = archive.List(path); err != nil {
		err = fmt.Errorf("%s: %w", e.roots.Shown(pfn), err)
	}
	return path, listing, err
}

func (e inputFolders) unchanged(pfn string, before archive.Listing) error {
	_, now, err := e.list(pfn)
	if err == nil && now.State() != before.State() {
		err = fmt.Errorf("%s was changed while it was read", e.roots.Shown(pfn))
	}
	return err
}

// packedFolder is an archive that goes when it was read.
type packedFolder struct {
	*disk.Unnamed
	info storage.Info
}

// Info tells what it is.
func (p *packedFolder) Info() storage.Info { return p.info }
