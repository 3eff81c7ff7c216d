package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/store"
)

// Cleaned says what Clean has removed, and what it has left.
type Cleaned struct {
	Removed []string // paths
	Left    []string // one sentence each
	Bytes   int64    // of removed files, linked ones as often as they are linked
}

// Clean removes the state of a workflow folder where nothing runs and, if that is
// wanted, what it has published. What Fairway has not put there stays. An error is
// a *RunningError where a server runs.
func Clean(ctx context.Context, workflow string, results bool) (*Cleaned, error) {
	workflow, err := filepath.Abs(workflow)
	if err != nil {
		return nil, err
	}
	state := filepath.Join(workflow, StateFolder)
	lock, err := openLock(state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.release() }()
	c := new(Cleaned)
	if results {
		if err := c.results(ctx, workflow); err != nil {
			return c, err
		}
	}
	return c, c.state(state)
}

// results removes what is recorded as published and stands as it was.
func (c *Cleaned) results(ctx context.Context, workflow string) error {
	folders, err := FoldersOf(workflow)
	if err != nil {
		return err
	}
	s, err := publishedIn(ctx, folders)
	if err != nil {
		c.Left = append(c.Left, fmt.Sprintf("%s: what Fairway has put there is not known any more (%v)", folders.Results, err))
		return nil
	}
	results, err := beneath.Open(folders.Results)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = results.Close() }()
	left := 0
	for _, lfn := range s.obsolete(nil, true) {
		r, _ := s.get(lfn)
		gone, err := s.remove(results, lfn)
		switch {
		case err != nil:
			return err
		case gone:
			c.Bytes += r.Size
		}
	}
	err = results.Walk(func(string, fs.FileInfo) error { left++; return nil })
	switch {
	case err != nil:
		return err
	case left > 0:
		c.Left = append(c.Left, fmt.Sprintf("%s: files that Fairway has not put there, or that were changed since: %d", folders.Results, left))
	case os.Remove(folders.Results) == nil:
		c.Removed = append(c.Removed, folders.Results)
	}
	return nil
}

func publishedIn(ctx context.Context, folders Folders) (*standing, error) {
	records, err := store.OpenSQLite(filepath.Join(folders.State, StoreFile), store.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return &standing{folders: folders}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := loadStanding(ctx, records, folders)
	return s, errors.Join(err, records.Close())
}

// storeFiles are those that SQLite makes.
var storeFiles = []string{StoreFile, StoreFile + "-wal", StoreFile + "-shm", StoreFile + "-journal"}

// state removes what is in the folder of a state by the names that Fairway gives,
// and the folder if nothing else is in it.
func (c *Cleaned) state(state string) error {
	folder, err := beneath.Open(state)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = folder.Close() }()
	id, ours := "", false
	if i, err := readIdentity(state); err == nil && i != nil {
		there, err := identify(state)
		id, ours = i.ID, err == nil && i.isOf(there)
	}
	for _, name := range sharedNames {
		if err := c.shared(folder, name, id, ours); err != nil {
			return err
		}
	}
	names, err := folder.List(".")
	if err != nil {
		return err
	}
	last := []string{lockName, identityName}
	for _, name := range names {
		known := slices.Contains(storeFiles, name) || name == socketName || name == identityName+".new" || strings.HasPrefix(name, disk.PartPrefix)
		switch {
		case known:
			if err := c.remove(folder, name); err != nil {
				return err
			}
		case !slices.Contains(last, name):
			c.Left = append(c.Left, folder.Name(name))
		}
	}
	if len(c.Left) > 0 && slices.ContainsFunc(c.Left, func(left string) bool { return strings.HasPrefix(left, state+"/") }) {
		return nil // the identity stays as the mark that the folder is ours
	}
	for _, name := range last {
		if err := ignoreMissing(folder.Remove(name)); err != nil {
			return err
		}
	}
	if err := os.Remove(state); err != nil {
		return err
	}
	c.Removed = append(c.Removed, state)
	return nil
}

// shared removes what belongs to a state in one of its folders, which may be a
// link to one of others: there only what bears the identity, and then the link.
// A state without an identity, of an earlier version, has all that is in folders
// that are no links.
func (c *Cleaned) shared(folder *beneath.Folder, name, id string, ours bool) error {
	info, err := folder.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if info.Mode().Type() == fs.ModeSymlink {
		if target, err := beneath.Open(folder.Name(name)); err == nil && id != "" && ours {
			defer func() { _ = target.Close() }()
			if err := c.remove(target, id); err != nil {
				return err
			}
		}
		return c.remove(folder, name)
	}
	if id == "" {
		return c.remove(folder, name)
	}
	if err := c.remove(folder, path.Join(name, id)); err != nil {
		return err
	}
	_ = folder.RemoveFolder(name) // where it holds something else, it stays
	return nil
}

func (c *Cleaned) remove(folder *beneath.Folder, name string) error {
	bytes := int64(0)
	if info, err := folder.Lstat(name); err == nil && info.Mode().IsRegular() {
		bytes = info.Size()
	} else if sub, err := folder.Sub(name); err == nil {
		_ = sub.Walk(func(_ string, info fs.FileInfo) error {
			if info.Mode().IsRegular() {
				bytes += info.Size()
			}
			return nil
		})
		_ = sub.Close()
	}
	err := folder.RemoveAll(name)
	if errors.Is(err, beneath.ErrOutside) {
		c.Left = append(c.Left, folder.Name(name)+": something is mounted there")
		return nil
	}
	if err == nil {
		c.Bytes += bytes
	}
	return err
}
