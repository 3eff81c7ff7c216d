package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fairway/sched"
)

// fetch is a file that is being brought in; others that want it wait.
type fetch struct{ done chan struct{} }

// Fetch takes a file into use, and has bring write it to a path if it is not
// there. The size is what is reserved; a file of another size is refused. Of
// several calls for one file, one brings it in.
func (c *Cache) Fetch(ctx context.Context, ref Ref, size int64, bring func(path string) (int64, error)) (f *File, hit bool, err error) {
	for {
		c.mu.Lock()
		if e := c.entries[ref]; e != nil {
			defer c.mu.Unlock()
			return c.pin(e), true, nil
		}
		under := c.fetching[ref]
		if under == nil {
			under = &fetch{make(chan struct{})}
			c.fetching[ref] = under
			c.mu.Unlock()
			f, hit, err = c.bring(ref, size, bring)
			c.mu.Lock()
			delete(c.fetching, ref)
			c.mu.Unlock()
			close(under.done)
			return f, hit, err
		}
		c.mu.Unlock()
		if _, err := sched.Receive(ctx, c.cfg.Sched, under.done); !errors.Is(err, sched.ErrChannelClosed) {
			return nil, false, err
		}
	}
}

// Add puts a local file into the cache, by a link if that can be made; the file
// must not be written to any more. It is left where it is.
func (c *Cache) Add(ref Ref, size int64, path string) error {
	c.mu.Lock()
	known := c.entries[ref] != nil || c.fetching[ref] != nil
	c.mu.Unlock()
	if known {
		return nil
	}
	f, _, err := c.bring(ref, size, func(target string) (int64, error) { return linkOrCopy(path, target) })
	if err != nil {
		return err
	}
	f.Release()
	return nil
}

// bring reserves, writes and names a file, or takes a peer's.
func (c *Cache) bring(ref Ref, size int64, write func(path string) (int64, error)) (*File, bool, error) {
	name := fileName(ref, size)
	if len(name) > maxName {
		return nil, false, fmt.Errorf("%w: the name %s is too long", ErrFull, ref.LFN)
	}
	c.mu.Lock()
	if f, ok := c.adopt(ref, size, name); ok {
		c.mu.Unlock()
		return f, true, nil
	}
	r, err := c.reserve(size)
	c.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if err = addReserved.Hit(); err == nil {
		err = c.write(r, size, write)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= size
	if err == nil {
		err = c.name(r, name)
	}
	if err != nil {
		r.end()
		return nil, false, full(err)
	}
	return c.pin(c.insert(ref, size)), false, nil
}

func (c *Cache) write(r *reservation, size int64, write func(path string) (int64, error)) error {
	got, err := write(r.path)
	if err != nil {
		return err
	}
	if got != size {
		return fmt.Errorf("the file has %d bytes and should have %d", got, size)
	}
	return addWritten.Hit()
}

// name gives a written file its name, or takes the link of a peer that was
// faster, so that the host holds the contents once. The caller holds the mutex.
func (c *Cache) name(r *reservation, name string) error {
	defer c.host.lock()()
	defer r.end()
	if c.linkFromPeer(name) {
		return nil
	}
	if err := os.Rename(r.path, filepath.Join(c.folder, name)); err != nil {
		return err
	}
	return addNamed.Hit()
}

// reservation is room for a file that is being written.
type reservation struct {
	path   string // where it is written
	marker string // tells the peers; empty if there are none
}

// end removes what is left of it.
func (r *reservation) end() {
	_ = os.Remove(r.path)
	if r.marker != "" {
		_ = os.Remove(r.marker)
	}
}

// reserve makes room for size bytes. The caller holds the mutex.
func (c *Cache) reserve(size int64) (*reservation, error) {
	defer c.host.lock()()
	if err := c.makeRoom(size); err != nil {
		return nil, err
	}
	c.parts++
	r := &reservation{path: filepath.Join(c.folder, fmt.Sprint(newPrefix, c.parts))}
	if c.host != nil {
		r.marker = filepath.Join(c.folder, partName(c.parts, size))
		f, err := os.Create(r.marker)
		if err != nil {
			return nil, full(err)
		}
		_ = f.Close()
	}
	c.reserved += size
	return r, nil
}

// makeRoom drops files until size more bytes fit. The caller holds the mutex
// and the lock of the host.
func (c *Cache) makeRoom(size int64) error {
	limit := c.limit()
	if size > limit {
		return fmt.Errorf("%w: %d bytes are more than the %d that it may hold", ErrFull, size, limit)
	}
	excess := c.total() + size - limit
	if excess <= 0 {
		return nil
	}
	for _, e := range c.victims(excess) {
		_ = dropBefore.Hit()
		_ = os.Remove(c.path(e))
		held := c.heldByPeer(fileName(e.ref, e.size))
		_ = dropAfter.Hit()
		c.forget(e, !held)
		if !held {
			excess -= e.size
		}
	}
	if excess > 0 {
		return fmt.Errorf("%w for %d bytes: what is left is in use", ErrFull, size)
	}
	return nil
}

// victims are the first files in the policy's order that free as much as is
// asked for, or nothing if all that are not in use together would not.
func (c *Cache) victims(excess int64) (chosen []*entry) {
	for ref := range c.cfg.Policy.Order() {
		if excess <= 0 {
			break
		}
		if e := c.entries[ref]; e != nil && e.pins == 0 {
			chosen = append(chosen, e)
			excess -= e.size
		}
	}
	if excess > 0 {
		return nil
	}
	return chosen
}

// total is what is taken now: this cache's files and reservations, and of a
// shared cache those of the peers too, each file once.
func (c *Cache) total() int64 {
	sum := c.used + c.reserved
	seen := map[string]bool{}
	for _, p := range c.peers {
		for _, name := range p.names() {
			if size, ok := partSize(name); ok {
				sum += size
				continue
			}
			ref, size, ok := parseName(name)
			if !ok || seen[name] || c.entries[ref] != nil {
				continue
			}
			seen[name] = true
			sum += size
		}
	}
	return sum
}
