//go:build linux

package cli

import (
	"fairway/internal/server/folder"
	"fairway/internal/storage"
)

// roots are what PFNs of the workflow's folder are relative to.
func (c *console) roots() (storage.Roots, error) {
	dir, err := c.folderWithState()
	if err != nil {
		return storage.Roots{}, err
	}
	folders, err := folder.Of(dir)
	return folders.Roots(), err
}

// shownPlaces gives a stored file the name that it has here. Of a server that is reached over the
// network it is the one that the server gives it.
func (c *console) shownPlaces() (func(pfn string) string, error) {
	if c.service != "" && !folder.IsLasting(c.service) {
		return func(pfn string) string { return pfn }, nil
	}
	roots, err := c.roots()
	return roots.Shown, err
}
