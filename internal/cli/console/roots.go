//go:build linux

package console

import (
	"fairway/internal/server/folder"
	"fairway/internal/storage"
)

// Roots are what PFNs of the workflow's folder are relative to.
func (c *Console) Roots() (storage.Roots, error) {
	dir, err := c.FolderWithState()
	if err != nil {
		return storage.Roots{}, err
	}
	folders, err := folder.Of(dir)
	return folders.Roots(), err
}

// ShownPlaces gives a stored file the name that it has here. Of a server that is reached over the
// network it is the one that the server gives it.
func (c *Console) ShownPlaces() (func(pfn string) string, error) {
	if c.Service != "" && !folder.IsLasting(c.Service) {
		return func(pfn string) string { return pfn }, nil
	}
	roots, err := c.Roots()
	return roots.Shown, err
}
