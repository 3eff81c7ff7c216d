package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/beneath"
	"fairway/internal/server/folder"
	"fairway/internal/store"
)

// CleanResults removes what is recorded as published by a state and stands as it
// was, and tells of it.
func CleanResults(ctx context.Context, folders folder.Layout, c *folder.Cleaned) error {
	s, err := publishedIn(ctx, folders)
	if err != nil {
		c.Left = append(c.Left, fmt.Sprintf("%s: what Fairway has put there is not known any more (%v)", folders.Results, err))
		return nil
	}
	results, err := beneath.Open(folders.Results)
	if err != nil {
		return folder.IgnoreMissing(err)
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

func publishedIn(ctx context.Context, folders folder.Layout) (*standing, error) {
	records, err := store.OpenSQLite(filepath.Join(folders.State, folder.StoreFile), store.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return &standing{folders: folders}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := loadStanding(ctx, records, folders)
	return s, errors.Join(err, records.Close())
}
