package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairway/internal/disk"
	"fairway/internal/fault"
)

var (
	putWritten = fault.New("storage.put.written")
	putNamed   = fault.New("storage.put.named")
	getWritten = fault.New("storage.get.written")
)

// File is the element of the scheme file: folders that this machine reaches by
// path. Where both sides are on one file system, Put and Get make a hard link,
// or share blocks where the file system can, and copy otherwise.
type File struct{}

// Path returns the path that a PFN of the scheme file names.
func Path(pfn string) (string, error) {
	if Scheme(pfn) != "file" {
		return "", fmt.Errorf("%s: %w: not a local file", pfn, ErrScheme)
	}
	path := pfn
	if scheme, rest, ok := strings.Cut(pfn, ":"); ok && strings.EqualFold(scheme, "file") {
		path = rest
		if strings.HasPrefix(path, "///") {
			path = path[2:]
		}
	}
	if !filepath.IsAbs(path) || strings.HasPrefix(path, "//") {
		return "", fmt.Errorf("%s: a PFN of the scheme file needs an absolute path and no host", pfn)
	}
	return filepath.Clean(path), nil
}

// Open is part of Element.
func (File) Open(_ context.Context, pfn string) (io.ReadCloser, error) {
	path, err := Path(pfn)
	if err != nil {
		return nil, err
	}
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Get is part of Element.
func (File) Get(ctx context.Context, pfn, path string) (int64, error) {
	source, err := Path(pfn)
	if err != nil {
		return 0, err
	}
	info, err := regular(source)
	if err != nil {
		return 0, err
	}
	size, err := get(ctx, source, path, info)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", pfn, err)
	}
	return size, nil
}

func get(ctx context.Context, source, path string, info fs.FileInfo) (int64, error) {
	if err := place(ctx, source, path, fleeting); err != nil {
		return 0, err
	}
	return info.Size(), keepTime(info, path)
}

func keepTime(original fs.FileInfo, path string) error {
	there, err := os.Lstat(path)
	if err != nil || os.SameFile(there, original) {
		return err
	}
	return os.Chtimes(path, time.Time{}, original.ModTime())
}

// Put is part of Element. Folders of the PFN are made as needed.
func (File) Put(ctx context.Context, path, pfn string) error {
	target, err := Path(pfn)
	if err != nil {
		return err
	}
	if err = makeFolder(filepath.Dir(target)); err == nil {
		err = put(ctx, path, target, firstContents, func() error { return disk.Sync(filepath.Dir(target)) })
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", pfn, Full(err))
	}
	return nil
}

// put stores a file at target. named brings the name to disk.
func put(ctx context.Context, path, target string, d durability, named func() error) error {
	err := place(ctx, path, target, d)
	if errors.Is(err, fs.ErrExist) {
		if err = sameContents(path, target); err == nil && d == withName {
			err = disk.Sync(target) // who gave it that name may not have come to that
		}
	}
	if err != nil {
		return err
	}
	if err := putNamed.Hit(); err != nil {
		return err
	}
	return named()
}

// Stat is part of Element.
func (File) Stat(_ context.Context, pfn string) (Info, error) {
	path, err := Path(pfn)
	if err != nil {
		return Info{}, err
	}
	info, err := regular(path)
	if err != nil {
		return Info{}, err
	}
	return InfoOf(info), nil
}

// Remove is part of Element.
func (File) Remove(_ context.Context, pfn string) error {
	path, err := Path(pfn)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List is part of Element.
func (File) List(_ context.Context, pfn string) ([]Entry, error) {
	path, err := Path(pfn)
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	return entriesOf(found), nil
}

func entriesOf(found []fs.DirEntry) []Entry {
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Name: e.Name(), Folder: e.IsDir()}
	}
	return entries
}

func regular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return info, nil
}

// Full makes an error of a full disk or quota an [ErrNoSpace]. Its text stays: it says so already.
func Full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fullError{err}
	}
	return err
}

type fullError struct{ error }

func (e fullError) Unwrap() error { return e.error }

func (fullError) Is(target error) bool { return target == ErrNoSpace }

// makeFolder makes path and what is missing above it durable. There are file systems that say of
// each new folder that it does not exist (/proc).
func makeFolder(path string) error {
	err := os.Mkdir(path, 0o777)
	switch {
	case err == nil:
		return disk.Sync(filepath.Dir(path))
	case errors.Is(err, fs.ErrExist):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}
