package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// fileSystem is what a state asks of the file system in which it is.
type fileSystem struct {
	lock func(*os.File) error // as tryLock
	sync func(*os.File) error // as (*os.File).Sync, of files and of folders
	mmap func(*os.File) error // shares memory among processes
}

var system = fileSystem{lock: tryLock, sync: (*os.File).Sync, mmap: mapShared}

// checkFileSystem returns an error for a new state that would stand where locks do not
// hold, files do not come to disk, or processes share no memory: two servers would write
// one store, or a crash would lose what was acknowledged. A state that is there passed
// before.
func checkFileSystem(state string, system fileSystem) error {
	there, err := identify(state)
	if err != nil {
		return err
	}
	if i, err := readIdentity(state); err != nil || i != nil && i.isOf(there) {
		return nil // what is damaged is told when it is read
	}
	if err := system.try(state); err != nil {
		return fmt.Errorf("the state of a run cannot be in %s, since %w; choose a folder on a local disk with --dir",
			filepath.Dir(state), err)
	}
	return nil
}

// try returns what the file system of a folder does not do.
func (system fileSystem) try(folder string) error {
	file, err := disk.CreateUnnamed(folder, 0, 0o600)
	if err != nil {
		return fmt.Errorf("no file can be made there: %w", err)
	}
	defer func() { _ = file.Close() }()
	other, err := os.OpenFile(disk.Descriptor(file.File), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("a file cannot be opened twice there: %w", err)
	}
	defer func() { _ = other.Close() }()
	if err := system.lock(file.File); err != nil {
		return fmt.Errorf("files cannot be locked there: %w", err)
	}
	if err := system.lock(other); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return errors.New("locks do not keep others out there")
	}
	if _, err := file.Write(make([]byte, os.Getpagesize())); err != nil {
		return fmt.Errorf("files cannot be written there: %w", err)
	}
	above, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = above.Close() }()
	var both errgroup.Group // the disk is waited for once
	for _, f := range []*os.File{file.File, above} {
		both.Go(func() error { return system.sync(f) })
	}
	if err := both.Wait(); err != nil {
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			err = of.Err // the file is gone when this is read
		}
		return fmt.Errorf("files cannot be brought to disk there (fsync): %w", err)
	}
	if err := system.mmap(file.File); err != nil {
		return fmt.Errorf("processes cannot share memory in files there (mmap): %w", err)
	}
	return nil
}

func mapShared(file *os.File) error {
	memory, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return unix.Munmap(memory)
}
