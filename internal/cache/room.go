package cache

import (
	"fmt"
	"os"
)

// makeRoom drops files until size more bytes fit. With the error it returns the names of
// those that it has dropped and peers have not yet: there may be room when they have. The
// caller holds the mutex and the lock of the host.
func (c *Cache) makeRoom(size int64) (linked []string, err error) {
	limit := c.limit()
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes are more than the %d that it may hold", ErrFull, size, limit)
	}
	if c.atMost() <= limit-size {
		return nil, nil
	}
	excess := c.total() + size - limit
	if excess <= 0 {
		return nil, nil
	}
	for _, e := range c.victims(excess) {
		_ = dropBefore.Hit()
		_ = os.Remove(c.path(e))
		held := c.heldByPeer(fileName(e.Item))
		_ = dropAfter.Hit()
		c.forget(e)
		c.evicted(e, !held)
		if held {
			linked = append(linked, fileName(e.Item))
		} else {
			excess -= e.Size
		}
	}
	if excess > 0 {
		return linked, fmt.Errorf("%w for %d bytes: what is left is in use", ErrFull, size)
	}
	return nil, nil
}

// victims are the first files in the policy's order that free as much as is
// asked for, or nothing if all that are not in use together would not.
func (c *Cache) victims(excess int64) (chosen []*entry) {
	used := c.usedByPeers()
	for ref := range c.order.Going() {
		if excess <= 0 {
			break
		}
		if e := c.entries[ref]; e != nil && e.idle(used) {
			chosen = append(chosen, e)
			excess -= e.Size
		}
	}
	if excess > 0 {
		return nil
	}
	return chosen
}

// idle reports whether nobody on the host has the file in use. Where another pilot has
// (usedByPeers), to drop it here would free nothing.
func (e *entry) idle(usedByPeers map[int64]bool) bool {
	return e.pins == 0 && (len(usedByPeers) == 0 || !usedByPeers[placeOf(fileName(e.Item))])
}

// total is what is taken now: this cache's files and reservations, and of a
// shared cache those of the peers too, each file once.
func (c *Cache) total() int64 {
	sum := c.used + c.reserved
	seen := map[string]bool{}
	for _, p := range c.peers {
		if claimed, ok := p.claimed(); ok {
			sum += claimed.reserved
		}
		for _, name := range p.names() {
			i, ok := parseName(name)
			if !ok || seen[name] || c.holds(i) {
				continue
			}
			seen[name] = true
			sum += i.Size
		}
	}
	return sum
}

// holds reports whether this very file is in the cache.
func (c *Cache) holds(i Item) bool {
	e := c.entries[i.Ref]
	return e != nil && e.Item == i
}
