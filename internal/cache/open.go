package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/eviction"
	"fairway/lib/sched"
)

// Open makes a cache whose folder is Dir/Name. What stands in the folder is
// taken over, and so is what pilots that are gone have left in Dir, unless the
// machine may have lost power since; what does not fit is dropped, the oldest first. It
// fails with [ErrNoSpace] where the disk is full of what is not a dead pilot's.
func Open(cfg Config) (*Cache, error) {
	order, err := eviction.New[Ref](cmp.Or(cfg.Policy, eviction.NextUse))
	if err != nil {
		return nil, fmt.Errorf("cache %s: %w", cfg.Name, err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Sched == nil {
		cfg.Sched = sched.Default()
	}
	c := &Cache{
		cfg: cfg, folder: filepath.Join(cfg.Dir, cfg.Name),
		entries: map[Ref]*entry{}, order: order, fetching: map[Ref]*fetch{}, peers: map[string]*peer{},
		looked: make(chan struct{}), dropTime: DropTime, syncTime: SyncTime, damaged: map[string]bool{},
	}
	c.watch, c.stop = context.WithCancel(context.Background())
	if err := c.open(); err != nil {
		c.stop()
		c.closeFiles()
		return nil, fmt.Errorf("cache %s: %w", c.folder, err)
	}
	return c, nil
}

func (c *Cache) open() error {
	if err := c.setUpOnFullDisk(); err != nil {
		return err
	}
	if err := c.emptyUnlessTrusted(); err != nil {
		return err
	}
	c.inherit()
	c.mu.Lock()
	defer c.mu.Unlock()
	recorded := readSums(c.cfg.Dir)
	if err := c.rebuild(recorded); err != nil {
		return err
	}
	c.shrink()
	c.cutSums(recorded)
	if c.cfg.Shared {
		c.recorded = recorded
	}
	return nil
}

// setUpOnFullDisk is setUp. Where the disk has no room for that, it drops files that pilots
// have left, the oldest first, until it has: nobody else would ever drop them.
func (c *Cache) setUpOnFullDisk() error {
	err := c.setUp()
	if !errors.Is(err, ErrNoSpace) {
		return err
	}
	for _, path := range oldestFirst(c.cfg.Dir) {
		lock, held := lockFolder(filepath.Dir(path), false)
		if held != nil {
			continue // its pilot lives
		}
		_ = os.Remove(path)
		_ = lock.Close()
		if err = c.setUp(); !errors.Is(err, ErrNoSpace) {
			break
		}
	}
	return err
}

// oldestFirst returns the paths of the files in all caches of a host.
func oldestFirst(dir string) (paths []string) {
	used := map[string]time.Time{}
	found, _ := fs.Glob(os.DirFS(dir), "*/*@*@*@*") // the pattern is well formed
	for _, name := range found {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if _, ok := parseName(filepath.Base(path)); ok && err == nil {
			used[path] = info.ModTime()
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(used[a].Compare(used[b]), strings.Compare(a, b))
	})
	return paths
}

func (c *Cache) setUp() (err error) {
	if c.own == nil {
		c.own = c.takeOver()
	}
	if err := errors.Join(c.openToGroup(), os.MkdirAll(c.folder, 0o777)); err != nil {
		return full(err)
	}
	if c.own == nil {
		if c.own, err = lockFolder(c.folder, true); err != nil {
			return full(err)
		}
	}
	if c.cfg.Group {
		if err := c.own.Chmod(c.bookMode()); err != nil {
			return full(err)
		}
	}
	if !c.cfg.Shared {
		return nil
	}
	if c.host == nil {
		file, err := os.OpenFile(filepath.Join(c.cfg.Dir, lockName), os.O_RDWR|os.O_CREATE, c.bookMode())
		if err != nil {
			return full(err)
		}
		c.host = &hostLock{file: file, log: c.cfg.Log}
	}
	if c.turns == nil {
		file, err := os.OpenFile(filepath.Join(c.cfg.Dir, turnsName), os.O_RDWR|os.O_CREATE, c.bookMode())
		if err != nil {
			return full(err)
		}
		c.turns = &turns{file, c.cfg.Sched, c.cfg.Log, TurnTime}
	}
	if c.claims, err = openClaims(c.folder, c.bookMode()); err != nil {
		return full(err)
	}
	c.uses, err = openUses(c.folder, c.bookMode())
	return full(err)
}

// emptyUnlessTrusted begins anew in a folder whose files may not hold what they
// should.
func (c *Cache) emptyUnlessTrusted() error {
	if !trusted(c.folder) {
		names, err := os.ReadDir(c.folder)
		if err != nil {
			return err
		}
		for _, n := range names {
			if !isBookkeeping(n.Name()) {
				_ = os.RemoveAll(filepath.Join(c.folder, n.Name()))
			}
		}
	}
	return distrust(c.folder)
}

// takeOver gives the folder that a pilot has left the name of this one, where there is none of
// this name yet: one call, however many files it has. It returns the lock of the folder; nil if
// there is nothing to take over.
func (c *Cache) takeOver() (own *os.File) {
	if _, err := os.Lstat(c.folder); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	siblings, _ := os.ReadDir(c.cfg.Dir)
	for _, s := range siblings {
		folder := filepath.Join(c.cfg.Dir, s.Name())
		if !s.IsDir() || strings.HasPrefix(s.Name(), gonePrefix) {
			continue
		}
		lock, err := lockFolder(folder, false)
		if err != nil {
			continue // its pilot lives
		}
		if trusted(folder) && unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, c.folder, unix.RENAME_NOREPLACE) == nil {
			return lock
		}
		_ = lock.Close()
	}
	return nil
}

func (c *Cache) inherit() {
	siblings, _ := os.ReadDir(c.cfg.Dir)
	for _, s := range siblings {
		folder := filepath.Join(c.cfg.Dir, s.Name())
		if s.IsDir() && folder != c.folder {
			c.inheritFrom(folder)
		}
	}
}

// inheritFrom does nothing while the owner of the folder lives.
func (c *Cache) inheritFrom(folder string) {
	lock, err := lockFolder(folder, false)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(filepath.Base(folder), gonePrefix) {
			removeCache(folder)
		}
		return
	}
	defer lock.Close()
	trust := trusted(folder)
	names, _ := os.ReadDir(folder)
	for _, n := range names {
		if _, ok := parseName(n.Name()); ok && trust {
			_ = os.Rename(filepath.Join(folder, n.Name()), filepath.Join(c.folder, n.Name()))
		}
	}
	removeCache(folder)
}

// rebuild makes the index from the names of the files, and of what is recorded of
// their hashes. The caller holds the mutex.
func (c *Cache) rebuild(recorded map[string]Hash) error {
	found, err := os.ReadDir(c.folder)
	if err != nil {
		return err
	}
	type aged struct {
		Item
		time time.Time
	}
	var files []aged
	seen := map[Ref]bool{}
	for _, f := range found {
		info, err := f.Info()
		i, ok := parseName(f.Name())
		hash, known := recorded[f.Name()]
		switch {
		case err != nil || f.Name() == trustName || isBookkeeping(f.Name()):
		case ok && info.Mode().IsRegular() && info.Size() == i.Size && !seen[i.Ref] && (!known || hash != Hash{}):
			seen[i.Ref] = true
			files = append(files, aged{i, info.ModTime()})
		default:
			_ = os.RemoveAll(filepath.Join(c.folder, f.Name()))
		}
	}
	slices.SortFunc(files, func(a, b aged) int {
		return cmp.Or(a.time.Compare(b.time), strings.Compare(a.LFN, b.LFN), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Tag, b.Tag))
	})
	for _, f := range files {
		c.insertUnproved(f.Item, recorded)
	}
	c.tellPeers()
	return nil
}

// shrink drops files until they fit, as far as they are not in use. It drops what it can,
// where makeRoom drops enough or nothing: the limit has fallen already. The caller holds
// the mutex.
func (c *Cache) shrink() {
	unlock, _ := c.host.lock() // what the others hold changes little meanwhile
	excess, used := c.total()-c.limit(), c.usedByPeers()
	var leaving []*entry
	for ref := range c.order.Going() {
		if e := c.entries[ref]; e != nil && e.idle(used) && excess > 0 {
			leaving = append(leaving, e)
			excess -= e.Size
		}
	}
	unlock()
	for _, e := range leaving {
		c.evicted(e, c.drop(e))
	}
}

// gonePrefix begins the name of a cache folder that is being removed.
const gonePrefix = ".gone-"

// Close ends the cache. Its files stay for a pilot that comes later, unless
// pilots that share them are there: those keep the links they have, and the
// space that this pilot brought goes with it.
func (c *Cache) Close() {
	c.stop()
	c.group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.peers) > 0 {
		gone := filepath.Join(c.cfg.Dir, gonePrefix+c.cfg.Name)
		if os.Rename(c.folder, gone) == nil {
			removeCache(gone)
		}
	} else if len(c.entries) > 0 {
		c.bringToDisk()
	}
	c.closeFiles()
}

// closeFiles closes what setUp has opened, and so gives up the folder.
func (c *Cache) closeFiles() {
	_ = c.own.Close()
	c.claims.close()
	c.turns.close()
	c.uses.close()
	if c.host != nil {
		_ = c.host.file.Close()
	}
}
