package feed

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/logical"
	"fairway/internal/server/folder"
)

// Glob returns the paths that a pattern of [filepath.Match] matches, element by
// element, in no order; a relative one in folder, whose own name stands for
// itself. It passes over what [folder.IsHidden] tells. Unlike
// [filepath.Glob] it passes over no folder in silence: an error names one that cannot
// be read, and what the others have is returned all the same. A pattern that ends in a slash
// matches folders only, and the paths end so too.
func Glob(folder, glob string) ([]string, error) {
	if !logical.IsFolder(glob) {
		return globAll(folder, glob)
	}
	found, err := globAll(folder, glob)
	var folders []string
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			folders = append(folders, path+"/")
		}
	}
	return folders, err
}

func globAll(folder, glob string) ([]string, error) {
	glob = filepath.Clean(glob)
	if filepath.IsAbs(glob) {
		folder, glob = "/", strings.TrimPrefix(glob, "/")
	}
	var unread error
	paths := []string{folder}
	for element := range strings.SplitSeq(glob, "/") {
		var next []string
		for _, path := range paths {
			found, err := matchesIn(path, element)
			unread = cmp.Or(unread, err)
			next = append(next, found...)
		}
		paths = next
	}
	return paths, unread
}

// matchesIn returns the paths in a folder that one element of a pattern matches.
func matchesIn(in, element string) ([]string, error) {
	if !strings.ContainsAny(element, `*?[\`) {
		path := filepath.Join(in, element)
		if _, err := os.Lstat(path); err != nil {
			return nil, unreadable(in, err)
		}
		return []string{path}, nil
	}
	names, err := namesIn(in)
	if err != nil {
		return nil, unreadable(in, err)
	}
	var paths []string
	for _, name := range names {
		fits, err := filepath.Match(element, name)
		if err != nil {
			return nil, err
		}
		if fits && !folder.IsHidden(name, element) {
			paths = append(paths, filepath.Join(in, name))
		}
	}
	return paths, nil
}

func namesIn(folder string) ([]string, error) {
	f, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// unreadable is nil where there is no folder, or nothing of that name in it.
func unreadable(folder string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return fmt.Errorf("the folder %s cannot be read: %w", folder, err)
}
