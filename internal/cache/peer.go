package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/lib/sched"
)

// A large folder takes long to list. Looking at a peer's takes no more than
// one part in lookShare of the time, but waits no longer than MaxLookPause: so
// late may a file of a peer be noticed, or space that it has given up.
const (
	lookShare    = 20
	MaxLookPause = time.Second
)

type peer struct {
	folder string
	stop   context.CancelFunc
	known  map[string]bool // files seen in its folder
	slow   bool            // it was waited for in vain, and nothing has changed in its folder since
}

func (p *peer) names() []string {
	f, err := os.Open(p.folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// SetPeers says which folders the other live pilots of the host have now. A
// shared cache takes links to the files in those of this user, also to those that come later
// (paper 3, section IV-D); the limit follows their number. The others, as those of other users, are
// for CopyFromGroup alone: pilots say where their folders are, and one may lie.
func (c *Cache) SetPeers(folders []string) {
	if !c.cfg.Shared {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]bool{}
	var others []string
	for _, folder := range folders {
		if folder == c.folder {
			continue
		}
		if c.peers[folder] == nil && !c.isSibling(folder) {
			others = append(others, folder)
			continue
		}
		now[folder] = true
		if c.peers[folder] == nil {
			c.join(folder)
		}
	}
	left := false
	for folder, p := range c.peers {
		if !now[folder] {
			left = true
			c.leave(p)
			c.inheritLinks(folder)
		}
	}
	if left {
		c.shrink()
	}
	if c.cfg.Group {
		c.setOthers(others)
	}
}

// join begins to follow a peer. The caller holds the mutex.
func (c *Cache) join(folder string) {
	if _, err := os.Stat(folder); err != nil {
		return
	}
	ctx, stop := context.WithCancel(c.watch)
	p := &peer{folder: folder, stop: stop, known: map[string]bool{}}
	c.peers[folder] = p
	if len(c.peers) == 1 { // so far there was nobody to tell
		for _, e := range c.entries {
			c.tellUse(e)
		}
	}
	c.group.Go(func() { c.follow(ctx, p) })
}

func (c *Cache) leave(p *peer) {
	p.stop()
	delete(c.peers, p.folder)
	c.wakeAfterLook()
}

// isSibling reports whether a folder stands in Dir, where pilots that share files make theirs, and is of
// the owner of this cache's. Nobody else could make one there. Dir itself, and what stands above it, can
// be named as if they stood in it.
func (c *Cache) isSibling(folder string) bool {
	if filepath.Clean(folder) != folder {
		return false
	}
	own, err := os.Stat(c.cfg.Dir)
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Dir(folder))
	if err != nil || !os.SameFile(own, there) {
		return false
	}
	info, err := os.Lstat(folder)
	return err == nil && info.IsDir() && c.isOfThisUser(folder)
}

// inheritLinks removes the folder of a peer that was killed: what this cache
// wanted of it, it has links to.
func (c *Cache) inheritLinks(folder string) {
	if lock, err := lockFolder(folder, false); err == nil {
		removeCache(folder)
		_ = lock.Close()
	}
}

// removeCache removes what a cache has made in its folder, and the folder if nothing else is there: what
// bears no name of a cache is somebody else's, and a folder with such things that no cache has marked is
// left as it is. It follows no link.
func removeCache(folder string) {
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
		return
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	is := func(ours bool) func(fs.DirEntry) bool {
		return func(n fs.DirEntry) bool { return isOfCache(n.Name()) == ours }
	}
	if _, err := root.Lstat(trustName); err != nil && slices.ContainsFunc(names, is(false)) {
		return
	}
	for _, n := range slices.DeleteFunc(names, is(false)) {
		_ = root.RemoveAll(n.Name())
	}
	_ = os.Remove(folder)
}

func (c *Cache) follow(ctx context.Context, p *peer) {
	path := filepath.Join(p.folder, changesName)
	for {
		began := time.Now()
		state, err := sched.StatFile(path)
		if err != nil || !c.refresh(p, state.Info != nil) {
			return
		}
		pause := min(lookShare*time.Since(began), MaxLookPause)
		if c.cfg.Sched.Sleep(ctx, pause) != nil {
			return
		}
		if _, err := c.cfg.Sched.WaitFile(ctx, sched.Changes(path, state)); err != nil {
			return
		}
	}
}

// refresh takes links to files that are new in a peer's folder, and gives up
// those that the peer has given up: the host drops a file as one, or its space
// would not come free. It reports false when the peer has left.
func (c *Cache) refresh(p *peer, there bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers[p.folder] != p {
		return false
	}
	defer c.wakeAfterLook()
	p.slow = false
	names := p.names()
	if !there || names == nil {
		c.leave(p)
		c.shrink()
		return false
	}
	now := make(map[string]bool, len(names))
	asked := map[string]bool{}
	var fresh []Item
	for _, name := range names {
		if strings.HasPrefix(name, dropPrefix) {
			asked[name] = true
		}
		i, ok := parseName(name)
		switch {
		case !ok:
		case p.known[name] || c.entries[i.Ref] != nil:
			now[name] = true
		default:
			fresh = append(fresh, i)
		}
	}
	for some := range slices.Chunk(fresh, maxTaken) {
		if c.take(p, some) {
			for _, i := range some {
				now[fileName(i)] = true
			}
		}
	}
	for name := range p.known {
		if !now[name] {
			c.giveUp(name)
		}
	}
	if len(asked) > 0 {
		for _, e := range c.entries {
			if name := fileName(e.Item); asked[dropOf(name)] {
				c.giveUp(name)
			}
		}
	}
	p.known = now
	return true
}

// DropTime is how long a cache waits until its peers have dropped what it has dropped to make
// room. They do when they have looked at its folder, if they live; and it sees that when it
// has looked at theirs.
const DropTime = 3 * MaxLookPause

// untilDropped has peers drop their links to the files, unless they use them, and waits until
// none holds any. It reports false if that was in vain. A peer that was waited for in vain is
// not waited for again while nothing changes in its folder.
func (c *Cache) untilDropped(ctx context.Context, names []string) bool {
	ctx, stop := context.WithTimeout(ctx, c.dropTime)
	defer stop()
	defer c.askToDrop(names)()
	for {
		c.mu.Lock()
		holder := c.holder(names)
		looked := c.looked
		if holder != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			holder.slow = true
		}
		over := holder == nil || holder.slow || ctx.Err() != nil
		c.mu.Unlock()
		if over {
			return holder == nil
		}
		_, _ = sched.Receive(ctx, c.cfg.Sched, looked)
	}
}

// askToDrop tells peers of files that they are to drop, until done is called. A peer may not
// have seen that this cache held them: it looks at the folder only now and then.
func (c *Cache) askToDrop(names []string) (done func()) {
	for _, name := range names {
		_ = os.WriteFile(filepath.Join(c.folder, dropOf(name)), nil, c.bookMode())
	}
	c.touch()
	return func() {
		for _, name := range names {
			_ = os.Remove(filepath.Join(c.folder, dropOf(name)))
		}
	}
}

// dropOf names what asks peers to drop a file. A longer name than that of the file may not fit.
func dropOf(name string) string { return fmt.Sprintf("%s%x", dropPrefix, placeOf(name)) }

// holder returns a peer that has a link to one of the files, a slow one if there is one.
// The mutex is held.
func (c *Cache) holder(names []string) (found *peer) {
	for _, p := range c.peers {
		if (found == nil || p.slow) && slices.ContainsFunc(names, p.holds) {
			found = p
		}
	}
	return found
}

// wakeAfterLook has those look again who wait for peers (untilDropped). The mutex is held.
func (c *Cache) wakeAfterLook() {
	close(c.looked)
	c.looked = make(chan struct{})
}

// maxTaken is how many links are taken while the lock of the host is held.
const maxTaken = 64

// take takes links to files of a peer. It reports false if that is to be tried again.
func (c *Cache) take(p *peer, files []Item) bool {
	unlock, taken := c.host.lock()
	defer unlock()
	if !taken {
		return false
	}
	for _, i := range files {
		name := fileName(i)
		if c.entries[i.Ref] == nil && !c.damaged[name] &&
			os.Link(filepath.Join(p.folder, name), filepath.Join(c.folder, name)) == nil {
			c.insertUnproved(i, c.recorded)
		}
	}
	c.tellPeers()
	return true
}

func (c *Cache) giveUp(name string) {
	i, ok := parseName(name)
	if e := c.entries[i.Ref]; e != nil && ok && e.Item == i && e.pins == 0 {
		c.evicted(e, c.drop(e))
	}
}

// heldByPeer reports whether a live peer has a file of this name.
func (c *Cache) heldByPeer(name string) bool {
	for _, p := range c.peers {
		if p.holds(name) {
			return true
		}
	}
	return false
}

func (p *peer) holds(name string) bool {
	_, err := os.Lstat(filepath.Join(p.folder, name))
	return err == nil
}

func (c *Cache) linkFromPeer(name string) bool {
	for _, p := range c.peers {
		err := os.Link(filepath.Join(p.folder, name), filepath.Join(c.folder, name))
		if err == nil || errors.Is(err, fs.ErrExist) {
			return true
		}
	}
	return false
}

// adopt takes a file that a peer has and this cache has not noticed yet. The
// caller holds the mutex.
func (c *Cache) adopt(wanted Item) (*File, bool) {
	name := fileName(wanted)
	if len(c.peers) == 0 || c.entries[wanted.Ref] != nil || c.damaged[name] {
		return nil, false
	}
	unlock, taken := c.host.lock()
	defer unlock()
	if !taken || !c.linkFromPeer(name) {
		return nil, false
	}
	e := c.insertUnproved(wanted, c.recorded)
	c.tellPeers()
	return c.pin(e), true
}
