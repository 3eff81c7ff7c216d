// Package cache keeps files on a node's disk for later jobs (paper 3, sections
// IV-B to IV-D).
//
// A file is keyed by its LFN, its version and the tag that tells its contents
// apart from others of that name, and never changes. It is a file in the cache's
// folder, named by all that and its size, so that the index can be built again
// from the names after a crash; it appears by a rename, complete. The cache
// removes files in the folder whose names have another form.
//
// Guarantees:
//
//   - Space is reserved before anything is written, so the files together never
//     take more than the limit: MaxSpace - MinThreshold for each pilot that shares
//     the cache, since each runs jobs of its own. (Paper 3 takes MinThreshold off
//     once, however many pilots there are.) A file counts once however many pilots
//     hold a link to it.
//   - Of the pilots of a host that share, one brings a file in, and the others wait
//     for it.
//   - A file that is in use (a [File] that was not released) is never dropped. What another
//     pilot of the host uses is not dropped to make room, since that would free nothing.
//   - When there is no room, [ErrFull] is returned and nothing has changed, except
//     that files may have been dropped; the caller reads the file directly.
//   - After a start of the machine the cache takes over only files that were
//     brought to disk when their pilot left: others may hold anything.
//   - Changed gets each addition and each removal, in their order.
//
// add.go brings files in. They are evicted by makeRoom (room.go) when space is needed, in
// the order of package eviction, by shrink (open.go) when the limit falls, and by giveUp (peer.go)
// when a pilot that shares them has done so or waits for that (untilDropped). peer.go and
// claim.go share the space of a host, group.go reads files of other users, trust.go says what a
// cache takes over when it is opened.
//
// Methods may be called from any goroutine. They block for the disk, and in a
// shared cache for the lock of the host, which is held for a few system calls: if it is not
// to be had within LockTime, the cache goes on without bringing in anything.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fairway/internal/eviction"
	"fairway/internal/fault"
	"fairway/lib/sched"
)

var (
	// ErrFull says that no room could be made: the rest is in use, or the file
	// is larger than the cache, or its name is too long, or somebody has removed the
	// cache's folder or made it read-only.
	ErrFull = errors.New("no room in the cache")
	// ErrNoSpace says that the disk below the cache is full.
	ErrNoSpace = errors.New("no space left on the disk of the cache")
)

var (
	addReserved = fault.New("cache.add.reserved")
	addWritten  = fault.New("cache.add.written")
	addNamed    = fault.New("cache.add.named")
	dropBefore  = fault.New("cache.drop.before")
	dropAfter   = fault.New("cache.drop.after")
)

// Ref names the contents of a version of a logical file.
type Ref struct {
	LFN     string
	Version uint32
	// Tag tells them apart from what others wrote, or what the file held at
	// another time: two files with one Ref are alike.
	Tag uint64
}

// Item is a file as it can be put into a cache or asked for.
type Item struct {
	Ref
	Size int64 // bytes; asked for with 0 where it is not known
}

func (i Item) is(wanted Item) bool {
	return i.Ref == wanted.Ref && (i.Size == wanted.Size || wanted.Size == 0)
}

// Change is an addition to a cache or a removal.
type Change struct {
	Ref
	Size int64
	Hash Hash
	Gone bool
}

// Config describes a cache.
type Config struct {
	// Dir is the folder that holds the caches of the host's pilots.
	Dir string
	// Name is that of the pilot, and of its folder in Dir.
	Name string
	// MaxSpace is what this pilot brings, in bytes.
	MaxSpace int64
	// MinThreshold is the part of that which is kept free for jobs, in bytes.
	MinThreshold int64
	// Shared has the cache take links to what the peers hold, of the same user.
	Shared bool
	// Group has it copy what the peers of other users hold (CopyFromGroup), and lets the group of
	// the folder read what it holds itself.
	Group bool
	// Changed is called for each change, one at a time. It must not call the
	// cache. May be nil.
	Changed func(Change)
	// Policy chooses what goes. Default: eviction.NextUse, the order that the TaskQueue sends.
	Policy eviction.Policy
	// Log is told when the cache has to do without the others of the host. Default:
	// slog.Default().
	Log *slog.Logger
	// Sched waits for changes of the peers' folders. Default: sched.Default().
	Sched *sched.Scheduler
}

// Cache is one pilot's cache, from Open to Close.
type Cache struct {
	// These are as Open made them. The lock of the folder is held as long as the pilot
	// lives: a folder whose lock is free is one that a pilot has left.
	cfg    Config
	folder string
	own    *os.File
	sharing

	// The goroutines that follow peers. Close ends them.
	watch context.Context
	stop  context.CancelFunc
	group sync.WaitGroup

	// mu guards what follows. It is taken before the lock of the host.
	mu sync.Mutex

	// The files: each entry is a complete file in the folder, and each complete file an
	// entry. used is the sum of their sizes. reserved is what is being written, from
	// before its first byte until it is an entry or is removed. makeRoom keeps both, with
	// those of the peers, within the limit; they exceed it only when a peer has left and
	// the rest is in use.
	entries  map[Ref]*entry
	order    *eviction.Order[Ref] // of the entries
	used     int64
	reserved int64
	parts    int // names given so far to files that are written

	// What was evicted since Open. Any goroutine reads it, without mu.
	evictedFiles, evictedBytes atomic.Int64

	// Whether MarkAhead was called. Any goroutine reads it, without mu.
	marksAhead atomic.Bool

	// Files that are being brought in: one call does it, the others wait for it.
	fetching map[Ref]*fetch

	// Of a shared cache, by the names of files, from Open to Close. recorded has the hashes that
	// were recorded when it was opened: a peer may have taken such a file over without having read
	// it, so a link to it is compared like a file that this cache has taken over. damaged has the
	// files that this cache has found damaged and not brought in since: it takes them from no peer.
	recorded map[string]Hash
	damaged  map[string]bool

	// The folders of live pilots of other users, with how many files there were found wrong.
	others map[string]int

	// The other live pilots of the host, by folder, as SetPeers said. looked is closed, and
	// another one takes its place, when this cache has looked at the folder of one.
	peers    map[string]*peer
	looked   chan struct{}
	dropTime time.Duration // DropTime
	syncTime time.Duration // SyncTime
}

// sharing is of a cache whose host's pilots share their space; nil otherwise. Whoever looks at the
// folders of all and changes one holds the lock of the host, for a few system calls; claims tells
// them what this cache takes, and uses which files are in use.
type sharing struct {
	host   *hostLock
	claims *claims
	turns  *turns
	uses   *uses
}

// entry is a file of the cache. While pins, the number of Files that were not
// released, is above 0 it is not dropped.
type entry struct {
	Item
	pins     int
	use      int // the slot by which peers see that it is in use; 0 if they do not
	hash     Hash
	unproved bool // it was taken over, maybe by a peer, and this cache has not looked whether hash is right
}

// File is a file of the cache that is in use until it is released.
type File struct {
	cache *Cache
	entry *entry
	once  sync.Once
}

// Path is where the file is. It must not be written to.
func (f *File) Path() string { return f.cache.path(f.entry) }

// Hash is that of the contents, as far as the cache knows it.
func (f *File) Hash() Hash { return f.entry.hash }

// Size is that of the file, in bytes.
func (f *File) Size() int64 { return f.entry.Size }

// Release ends the use of the file. Later calls do nothing.
func (f *File) Release() {
	f.once.Do(func() {
		f.cache.mu.Lock()
		defer f.cache.mu.Unlock()
		f.entry.pins--
		f.cache.tellUse(f.entry)
	})
}

func (c *Cache) path(e *entry) string { return filepath.Join(c.folder, fileName(e.Item)) }

// limit is what the files of all pilots that share this cache may take together now, in
// bytes. The mutex is held.
func (c *Cache) limit() int64 {
	return max(0, c.cfg.MaxSpace-c.cfg.MinThreshold) * int64(1+len(c.peers))
}

// Dir is the cache's own folder, which peers may read.
func (c *Cache) Dir() string { return c.folder }

// Contents returns all files.
func (c *Cache) Contents() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Change, 0, len(c.entries))
	for _, e := range c.entries {
		all = append(all, Change{Ref: e.Ref, Size: e.Size, Hash: e.hash})
	}
	return all
}

// Evicted is how many files, and bytes of them, this cache has dropped to make room since it
// was opened. A file that pilots share is counted by the one whose link went last. It does
// not block.
func (c *Cache) Evicted() (files, bytes int64) {
	return c.evictedFiles.Load(), c.evictedBytes.Load()
}

// Get takes a file into use if it is there. One of another size is dropped, and so is one
// that somebody has removed or cut, or that was taken over and does not hold any more what
// its hash says.
func (c *Cache) Get(ctx context.Context, wanted Item) (*File, bool) {
	c.mu.Lock()
	f, ok := c.get(wanted)
	c.mu.Unlock()
	if ok {
		ok, _ = c.proved(ctx, f)
	}
	if !ok {
		return nil, false
	}
	return f, true
}

func (c *Cache) get(wanted Item) (*File, bool) {
	e := c.entries[wanted.Ref]
	switch {
	case e == nil:
		return nil, false
	case !c.stands(e):
		c.drop(e)
	case e.is(wanted):
		return c.pin(e), true
	case e.pins == 0:
		c.drop(e)
	}
	return nil, false
}

// stands reports whether the file of an entry is there, and whole as far as its size tells:
// other programs remove old files from scratch disks.
func (c *Cache) stands(e *entry) bool {
	info, err := os.Lstat(c.path(e))
	return err == nil && info.Mode().IsRegular() && info.Size() == e.Size
}

func (c *Cache) pin(e *entry) *File {
	e.pins++
	c.tellUse(e)
	c.order.Use(e.Ref)
	return &File{cache: c, entry: e}
}

// SetHints gives the order in which the TaskQueue lets files go: under [eviction.NextUse] all,
// under another policy the first stale of them, which nobody may read any more. What is not
// named goes as the policy says.
func (c *Cache) SetHints(order []Ref, stale int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Follow(order, stale)
}

// Drop removes a file that turned out to be damaged, or is not stored after all. What uses
// it keeps what it has open or linked.
func (c *Cache) Drop(ref Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[ref]; e != nil {
		c.drop(e)
	}
}

// drop removes an entry and tells. It reports whether no other pilot of the host holds the
// file.
func (c *Cache) drop(e *entry) (last bool) {
	_ = dropBefore.Hit()
	unlock, _ := c.host.lock() // it goes in any case
	_ = os.Remove(c.path(e))
	_ = os.Remove(c.aheadPath(c.folder, e.Ref))
	last = !c.heldByPeer(fileName(e.Item))
	unlock()
	_ = dropAfter.Hit()
	c.forget(e)
	return last
}

func (c *Cache) evicted(e *entry, last bool) {
	if last {
		c.evictedFiles.Add(1)
		c.evictedBytes.Add(e.Size)
	}
}

func (c *Cache) forget(e *entry) {
	delete(c.entries, e.Ref)
	c.used -= e.Size
	c.order.Drop(e.Ref)
	for _, p := range c.peers {
		p.known[fileName(e.Item)] = true // so that it is not taken back from there as a new one
	}
	c.tellPeers()
	c.changed(Change{Ref: e.Ref, Size: e.Size, Gone: true})
}

// tellPeers is due when files have come or gone. It tells the peers what this cache takes now,
// and wakes them: they wait for a new time of changesName.
func (c *Cache) tellPeers() {
	if c.host != nil {
		c.claim()
		c.touch()
	}
}

// changed tells the pilot of a change that has been made.
func (c *Cache) changed(change Change) {
	if c.cfg.Changed != nil {
		c.cfg.Changed(change)
	}
}

func (c *Cache) touch() {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(c.folder, changesName), now, now)
}

// opening is what it costs to bring a file back beyond its bytes, as bytes: a request to a
// storage element, and its answer.
const opening = 1 << 20

// insert takes note of a file that has got its name, and of its hash if that is known. The caller
// tells the peers.
func (c *Cache) insert(i Item, hash Hash) *entry {
	e := &entry{Item: i, hash: hash}
	c.entries[i.Ref] = e
	c.used += i.Size
	c.order.Store(i.Ref, i.Size, float64(i.Size+opening))
	c.changed(Change{Ref: i.Ref, Size: i.Size, Hash: hash})
	return e
}

// insertUnproved is insert for a file that this cache has not read, of which a hash may be
// recorded.
func (c *Cache) insertUnproved(i Item, recorded map[string]Hash) *entry {
	e := c.insert(i, recorded[fileName(i)])
	e.unproved = e.hash != Hash{}
	return e
}

func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}
