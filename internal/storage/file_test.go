package storage_test

import (
	"testing"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

func TestFileConforms(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: storage.File{}, PFN: "file:" + t.TempDir()}
	})
}
