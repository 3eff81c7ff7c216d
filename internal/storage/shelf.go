package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/disk"
)

// What an element can do for names whose contents change from version to version.
// Which of the two it can do decides how results are published there.
type (
	// Renamer is an element in which a file can take the name of another one.
	Renamer interface {
		// Mark is a text that tells what stands under a name now from what stood there
		// before, or will. It stays the same when the file is renamed. The error is
		// fs.ErrNotExist where nothing stands.
		Mark(ctx context.Context, pfn string) (string, error)
		// Rename gives a file another name, in one step in which it replaces what stands
		// there. It makes missing folders. It fails if the file is gone.
		Rename(ctx context.Context, from, to string) error
		// RemoveFolder removes a folder that is empty.
		RemoveFolder(ctx context.Context, pfn string) error
	}

	// Conditional is an element that writes a file only if what stands under its name
	// is what the writer believes.
	Conditional interface {
		// Look tells the mark of what stands under a name, and its labels. The error is
		// fs.ErrNotExist where nothing stands.
		Look(ctx context.Context, pfn string) (mark string, labels map[string]string, err error)
		// Replace has a local file stand under a name, with labels, if what stands there
		// has the mark that is given; an empty one: if nothing stands there. Otherwise the
		// error is fs.ErrExist, or fs.ErrNotExist. It returns the new mark.
		Replace(ctx context.Context, path, pfn, mark string, labels map[string]string) (string, error)
	}
)

var _ Renamer = File{}

// Mark is part of Renamer.
func (f File) Mark(ctx context.Context, pfn string) (string, error) {
	info, err := f.Stat(ctx, pfn)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%d-%d", info.Size, info.ModTime.UnixNano(), info.Inode), nil
}

// Rename is part of Renamer.
func (File) Rename(_ context.Context, from, to string) error {
	source, errFrom := Path(from)
	target, errTo := Path(to)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	if err := makeFolder(filepath.Dir(target)); err != nil {
		return Full(err)
	}
	if there, err := os.Lstat(target); err == nil && !there.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: target, Err: errors.New("it is not a regular file")}
	}
	if err := os.Rename(source, target); err != nil {
		return Full(err)
	}
	return errors.Join(disk.Sync(filepath.Dir(target)), disk.Sync(filepath.Dir(source)))
}

// RemoveFolder is part of Renamer.
func (f File) RemoveFolder(ctx context.Context, pfn string) error { return f.Remove(ctx, pfn) }
