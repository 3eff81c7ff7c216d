package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/lib/sched"
)

// Files are added without bringing them to disk, which would cost more than many
// jobs. When the machine loses power, a file may then have its name and size and
// other contents. So a folder says since which start of the machine it is written
// to; after another one it is trusted only if it was brought to disk as a whole
// when its pilot left.
const (
	trustName   = ".trust"
	durableMark = "durable"
)

// SyncTime bounds how long Close takes to bring what was added to disk. What takes
// longer is not trusted after the next start of the machine.
const SyncTime = time.Second

// boot is another one in tests.
var boot = disk.Boot

// trusted reports whether the files in a folder hold what they held when they got
// their names.
func trusted(folder string) bool {
	mark, err := os.ReadFile(filepath.Join(folder, trustName))
	return err == nil && (string(mark) == durableMark || string(mark) != "" && string(mark) == boot())
}

// distrust has the folder trusted until the machine starts again. That is durable
// before anything is added.
func distrust(folder string) error {
	path := filepath.Join(folder, trustName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	} else if err == nil {
		if err := disk.Sync(folder); err != nil {
			return err
		}
	}
	// Where the disk is full the mark is missing or cut, and the folder not trusted.
	_ = os.WriteFile(path, []byte(boot()), 0o644)
	return nil
}

// bringToDisk has the files trusted after the next start of the machine too, if
// that takes no longer than SyncTime.
func (c *Cache) bringToDisk() {
	ctx, cancel := context.WithTimeout(context.Background(), c.syncTime)
	defer cancel()
	done := make(chan error, 1)
	var few []string
	if len(c.entries) <= syncEach {
		for _, e := range c.entries {
			few = append(few, c.path(e))
		}
	}
	go func() { done <- syncFolder(c.folder, few) }()
	if err, other := sched.Receive(ctx, c.cfg.Sched, done); err == nil && other == nil {
		_ = os.WriteFile(filepath.Join(c.folder, trustName), []byte(durableMark), 0o644)
	}
}

// syncEach is up to how many files are brought to disk one by one. That takes no longer because of
// what other programs write.
const syncEach = 16

// syncFolder brings the files in a folder to disk. few are all of them, or none if they are many.
func syncFolder(folder string, few []string) error {
	for _, path := range few {
		if disk.Sync(path) != nil { // it may not be ours to read
			return syncAll(folder)
		}
	}
	if len(few) > 0 {
		return disk.Sync(folder)
	}
	return syncAll(folder)
}

// syncAll brings all of a file system to disk: one call for any number of files,
// most of which are there already.
func syncAll(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
