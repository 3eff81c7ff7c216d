package storage_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

func TestFileConforms(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		return storagetest.Folder{Element: storage.File{}, PFN: "file:" + t.TempDir()}
	})
}

// A named pipe that took the place of a file would block whoever reads it.
func TestNamedPipeIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if in, err := (storage.File{}).Open(t.Context(), path); err == nil {
		_ = in.Close()
		t.Error("a named pipe was opened")
	}
}
