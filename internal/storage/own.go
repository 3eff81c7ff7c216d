package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"fairway/internal/beneath"
)

// own is the element of StateScheme: the files of a state. Programs that write
// into its folder may leave links there, which lead nowhere.
type own struct{ roots Roots }

// at opens the folder of a file, and with make the missing ones above it. The
// caller closes the folder.
func (o own) at(pfn string, make bool) (folder *beneath.Folder, element string, err error) {
	name, _ := StateName(pfn)
	if _, err := o.roots.Path(pfn); err != nil {
		return nil, "", err
	}
	root, err := beneath.Open(o.roots.State)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if make {
		return root.Make(name, (*beneath.Folder).Sync)
	}
	return root.Parent(name)
}

// with does something with the path of a file, which is good until it returns.
func (o own) with(pfn string, make bool, do func(path string, folder *beneath.Folder) error) error {
	folder, element, err := o.at(pfn, make)
	if err != nil {
		return err
	}
	err = do(folder.Path(element), folder)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		err = named(err, folder.Name(element))
	}
	return errors.Join(err, folder.Close())
}

// named is an error that names a file as people know it.
func named(err error, name string) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	case errors.As(err, &link):
		return &fs.PathError{Op: link.Op, Path: name, Err: link.Err}
	}
	return err
}

// Open is part of Element.
func (o own) Open(_ context.Context, pfn string) (io.ReadCloser, error) {
	folder, element, err := o.at(pfn, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	return folder.Open(element)
}

// Get is part of Element.
func (o own) Get(ctx context.Context, pfn, path string) (size int64, err error) {
	err = o.with(pfn, false, func(source string, _ *beneath.Folder) error {
		info, err := regularItself(source)
		if err == nil {
			size, err = get(ctx, source, path, info)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", pfn, err)
	}
	return size, nil
}

// Put is part of Element. Folders of the PFN are made as needed.
func (o own) Put(ctx context.Context, path, pfn string) error {
	err := o.with(pfn, true, func(target string, folder *beneath.Folder) error {
		return put(ctx, path, target, withName, folder.Sync)
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", pfn, Full(err))
	}
	return nil
}

// Stat is part of Element.
func (o own) Stat(_ context.Context, pfn string) (i Info, err error) {
	err = o.with(pfn, false, func(path string, _ *beneath.Folder) error {
		info, err := regularItself(path)
		if err == nil {
			i = InfoOf(info)
		}
		return err
	})
	return i, err
}

// Remove is part of Element.
func (o own) Remove(_ context.Context, pfn string) error {
	folder, element, err := o.at(pfn, false)
	if err == nil {
		err = errors.Join(folder.Remove(element), folder.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List is part of Element.
func (o own) List(_ context.Context, pfn string) (entries []Entry, err error) {
	err = o.with(pfn, false, func(path string, _ *beneath.Folder) error {
		info, err := os.Lstat(path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "list", Path: path, Err: errors.New("it is not a folder")}
		}
		if err != nil {
			return err
		}
		found, err := os.ReadDir(path)
		entries = entriesOf(found)
		return err
	})
	return entries, err
}

func regularItself(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	return info, err
}
