package storage_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/test/files"
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

// Some file systems say of each new folder that it does not exist.
func TestFolderThatCannotBeMade(t *testing.T) {
	path := files.Write(t, filepath.Join(t.TempDir(), "x"), "x")
	if err := (storage.File{}).Put(t.Context(), path, "file:/proc/no-such-folder/x"); err == nil {
		t.Error("a file was put into /proc")
	}
}
