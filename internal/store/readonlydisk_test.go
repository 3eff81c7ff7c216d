package store

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/internal/taskqueue"
)

// A disk that is mounted read-only, as after errors, is not called full.
func TestReadOnlyDisksAreNotFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	s, err := OpenSQLite(filepath.Join(disk, "store.db"), ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("a")}})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	other, err := OpenSQLite(filepath.Join(disk, "store.db"), ReadWrite)
	if err == nil {
		err = other.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: "2", Body: []byte("x")}})
		_ = other.Close()
	}
	if !errors.Is(err, ErrReadOnlyDisk) || errors.Is(err, ErrFull) {
		t.Errorf("of a read-only disk it is said: %v", err)
	}
}
