package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/pilot/report"
	"fairway/lib/sched"
)

// ScratchPrefix begins the names of folders that may be Config.Scratch.
const ScratchPrefix = "fairway-"

// ScratchLife is how long the folder of a state stays on a node after its last pilot
// there has left before the end of the run: the next pilot finds its cache. After that,
// the next pilot of any state of this user removes it.
const ScratchLife = 7 * 24 * time.Hour

// scratchRetry is the time between two looks at a folder that another pilot removes.
const scratchRetry = 100 * time.Millisecond

// Names in Config.Scratch.
const (
	scratchSandbox = "sandbox"
	scratchCache   = "cache"
	scratchLock    = ".fairway-scratch"
)

// scratch is Config.Scratch while the pilot lives. Each pilot that uses the folder
// holds a shared lock on a file in it; who removes the folder holds it alone. The file is empty
// from when the TaskQueue has answered one of them until one leaves that knows that the run is over: one
// that ends without a word of the TaskQueue may be the last.
type scratch struct {
	folder string
	lock   *os.File

	heard bool // the TaskQueue has answered the pilot
}

// InScratch has the pilot keep sandboxes and cached files in a folder of a node that
// belongs to the state alone, and is removed when the run is over. Its name must begin
// with [ScratchPrefix]; its path may begin with a variable of the node. With Cache.Group each
// user has one, with the number of the user behind the name, and the group may read the cache
// in it.
func (c *Config) InScratch(folder string) {
	c.Scratch = folder
	c.SandboxDir = filepath.Join(folder, scratchSandbox)
	if c.Cache.Mode != CacheNone {
		c.Cache.Dir = filepath.Join(folder, scratchCache)
	}
}

// scratchOfUser has the folder be that of this user alone, where users share their caches.
func (c *Config) scratchOfUser() {
	if suffix := "-" + strconv.Itoa(os.Geteuid()); c.Cache.Group && c.Scratch != "" {
		c.InScratch(c.Scratch + suffix)
	}
}

// openToGroup lets the group reach the cache in a scratch folder, and nothing else there.
func (s *scratch) openToGroup() error {
	sandboxes := filepath.Join(s.folder, scratchSandbox)
	if err := os.Mkdir(sandboxes, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("scratch folder: %w", err)
	}
	if err := disk.CheckPrivate(sandboxes); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	info, err := os.Lstat(s.folder)
	if err == nil {
		err = os.Chmod(s.folder, info.Mode()&fs.ModeSetgid|0o750)
	}
	if err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	return nil
}

// claimScratch makes the folder, and removes those of other states of this user that no
// pilot has used for ScratchLife. A folder that others could have prepared is refused:
// the place is often one where everybody may write. The group may read one that is shared.
func claimScratch(
	ctx context.Context, folder string, shared bool, s *sched.Scheduler, log *slog.Logger,
) (*scratch, error) {
	check := disk.CheckPrivate
	if shared {
		check = disk.CheckGroupReads
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	sweepScratch(filepath.Dir(folder), filepath.Base(folder), log)
	for {
		made := os.Mkdir(folder, 0o700)
		if made != nil && !errors.Is(made, fs.ErrExist) {
			return nil, fmt.Errorf("scratch folder: %w", made)
		}
		lock, err := lockScratch(folder, check, disk.TryShare)
		if err == nil {
			claimed := &scratch{folder: folder, lock: lock}
			if made == nil {
				_, _ = lock.WriteAt([]byte("nobody was answered\n"), 0)
			}
			if shared {
				err = claimed.openToGroup()
			}
			return claimed, err
		}
		if !errors.Is(err, errRemoving) {
			return nil, err
		}
		if err := s.Sleep(ctx, scratchRetry); err != nil {
			return nil, fmt.Errorf("scratch folder: waiting until another pilot has removed %s: %w", folder, err)
		}
	}
}

// errRemoving says that another pilot has a scratch folder to itself.
var errRemoving = errors.New("it is being removed")

// lockScratch locks a scratch folder of this user, which check must find right. The lock file is
// the one that has the name at the end: it may be removed between.
func lockScratch(folder string, check func(string) error, take func(*os.File) error) (*os.File, error) {
	if err := check(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, errRemoving
	} else if err != nil {
		return nil, fmt.Errorf("scratch folder: %w; or change scratch of the site", err)
	}
	path := filepath.Join(folder, scratchLock)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRemoving
	}
	if err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	if err := take(lock); err != nil {
		_ = lock.Close()
		if errors.Is(err, disk.ErrHeld) {
			return nil, errRemoving
		}
		return nil, fmt.Errorf("locking the scratch folder %s: %w", folder, err)
	}
	if !standsAt(lock, path) {
		_ = lock.Close()
		return nil, errRemoving
	}
	return lock, nil
}

// sweepScratch removes the folders of other states that nobody has used for ScratchLife.
func sweepScratch(parent, own string, log *slog.Logger) {
	all, err := beneath.Open(parent)
	if err != nil {
		return
	}
	defer func() { _ = all.Close() }()
	names, _ := all.List(".")
	for _, name := range names {
		if !strings.HasPrefix(name, ScratchPrefix) || name == own {
			continue
		}
		folder := filepath.Join(parent, name)
		info, err := os.Lstat(filepath.Join(folder, scratchLock))
		if err != nil || time.Since(info.ModTime()) < ScratchLife {
			continue
		}
		lock, err := lockScratch(folder, disk.CheckGroupReads, disk.TryLock)
		if err != nil {
			continue
		}
		if err := all.Clear(name); err != nil {
			log.Warn("what pilots of another run have left could not be removed", "folder", folder, "error", err)
		}
		_ = lock.Close()
	}
}

// answered says that the TaskQueue has answered the pilot: a run goes on, maybe another one
// than was over when the last pilot left.
func (s *scratch) answered() {
	if s != nil && !s.heard {
		s.heard = true
		_ = s.lock.Truncate(0)
	}
}

// release ends the use of the folder. When the run is over, the last pilot on the node
// removes the folder, but for sandboxes that a person wants to see and results that
// nobody was told. That may be one that does not know that the run is over. Pilots of which
// the TaskQueue answered none leave no folder that was not there before.
func (s *scratch) release(over bool, log *slog.Logger) {
	if s == nil {
		return
	}
	if over {
		_, _ = s.lock.WriteAt([]byte("the run is over\n"), 0)
	}
	now := time.Now()
	_ = os.Chtimes(s.lock.Name(), now, now)
	_ = s.lock.Close()
	// Who leaves looks when it holds the lock no more, so the last that leaves finds what the
	// others wrote, and nobody else in the way.
	if info, err := os.Lstat(s.lock.Name()); err != nil || info.Size() == 0 {
		return
	}
	lock, err := lockScratch(s.folder, disk.CheckGroupReads, disk.TryLock)
	if err != nil {
		return // another pilot is there, and looks when it leaves; or one removes the folder
	}
	defer func() { _ = lock.Close() }()
	if err := s.remove(log); err != nil {
		log.Warn("the scratch folder could not be removed", "folder", s.folder, "error", err)
	}
}

func (s *scratch) remove(log *slog.Logger) error {
	all, err := beneath.Open(s.folder)
	if err != nil {
		return err
	}
	defer func() { _ = all.Close() }()
	if err := CleanUp(filepath.Join(s.folder, scratchSandbox), log); err != nil {
		return err
	}
	if err := all.Clear(scratchCache); err != nil {
		return err
	}
	for _, empty := range []string{
		filepath.Join(scratchSandbox, report.SpoolFolder), filepath.Join(scratchSandbox, KeptFolder), scratchSandbox,
	} {
		switch err := all.RemoveFolder(empty); {
		case errors.Is(err, unix.ENOTEMPTY):
			return nil // somebody still needs it
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if err := all.Remove(scratchLock); err != nil {
		return err
	}
	return os.Remove(s.folder)
}
