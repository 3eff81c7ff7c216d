package compare

import (
	"math"
	"slices"

	"fairway/internal/eviction"
	"fairway/internal/sim"
	"fairway/internal/taskqueue"
)

// Replayed is what one cache did with a sequence.
type Replayed struct {
	Reads, Hits       int
	ReadBytes, Missed int64 // Missed came from storage
}

// Replay sends a sequence through one cache. A file that is read and not
// there comes from storage into the cache; one larger than the cache is read
// past it. Under [eviction.NextUse] the order is that of the product, made
// from the rest of the sequence.
func Replay(policy eviction.Policy, limit int64, sequence []sim.Access) (Replayed, error) {
	order, err := eviction.New[taskqueue.FileRef](policy)
	if err != nil {
		return Replayed{}, err
	}
	c := replayCache{order: order, limit: limit, files: map[taskqueue.FileRef]int64{}, follow: policy == eviction.NextUse}
	c.future = nextReads(sequence)
	for i, a := range sequence {
		c.access(i, a)
	}
	return c.Replayed, nil
}

type replayCache struct {
	Replayed
	order  *eviction.Order[taskqueue.FileRef]
	limit  int64
	used   int64
	files  map[taskqueue.FileRef]int64
	future map[taskqueue.FileRef][]int // places of the reads that are still to come
	follow bool
}

func nextReads(sequence []sim.Access) map[taskqueue.FileRef][]int {
	future := map[taskqueue.FileRef][]int{}
	for i, a := range sequence {
		if !a.Write {
			future[a.File] = append(future[a.File], i)
		}
	}
	return future
}

func (c *replayCache) access(i int, a sim.Access) {
	if !a.Write {
		c.future[a.File] = c.future[a.File][1:]
		c.Reads++
		c.ReadBytes += a.Size
	}
	if _, ok := c.files[a.File]; ok {
		c.order.Use(a.File)
		if !a.Write {
			c.Hits++
		}
		return
	}
	if !a.Write {
		c.Missed += a.Size
	}
	if a.Size <= c.limit && c.makeRoom(a) {
		c.files[a.File] = a.Size
		c.used += a.Size
		c.order.Store(a.File, a.Size, float64(a.Size))
	}
}

// makeRoom evicts until a file fits. It reports false, having evicted nothing,
// if the policy would rather do without it.
func (c *replayCache) makeRoom(a sim.Access) bool {
	if c.used+a.Size <= c.limit {
		return true
	}
	if c.follow {
		c.plan()
	}
	var going []taskqueue.FileRef
	free := c.limit - c.used
	for f := range c.order.Going() {
		if free >= a.Size {
			break
		}
		going = append(going, f)
		free += c.files[f]
	}
	if free < a.Size {
		return false
	}
	for _, f := range going {
		c.used -= c.files[f]
		delete(c.files, f)
		c.order.Drop(f)
	}
	return true
}

// plan makes the order of next uses known.
func (c *replayCache) plan() {
	held := make([]eviction.NextRead[taskqueue.FileRef], 0, len(c.files))
	for f, size := range c.files {
		next := eviction.NextRead[taskqueue.FileRef]{File: f, Size: size, Read: len(c.future[f]) > 0}
		if next.Read {
			next.Rank = uint64(c.future[f][0])
		}
		held = append(held, next)
	}
	eviction.NextUseOrder(held)
	order := make([]taskqueue.FileRef, len(held))
	for i, f := range held {
		order[i] = f.File
	}
	c.order.Follow(order, 0)
}

// lowerBound returns a number of bytes that no cache of this size, knowing
// the whole sequence, could have read less than from storage. It is PFOO-L
// (Berger, Beckmann and Harchol-Balter 2018): of all stretches between two
// uses of a file, as many as fit into the cache's room times time, the
// cheapest first, as if they could be cut to measure.
func lowerBound(limit int64, sequence []sim.Access) int64 {
	type stretch struct {
		length int
		size   int64
	}
	var stretches []stretch
	last := map[taskqueue.FileRef]int{}
	var read int64
	for i, a := range sequence {
		before, ok := last[a.File]
		last[a.File] = i
		if a.Write {
			continue
		}
		read += a.Size
		if ok && a.Size <= limit {
			stretches = append(stretches, stretch{i - before, a.Size})
		}
	}
	slices.SortFunc(stretches, func(a, b stretch) int { return a.length - b.length })
	room := float64(limit) * float64(len(sequence))
	saved := 0.0
	for _, s := range stretches {
		part := min(room/(float64(s.size)*float64(s.length)), 1)
		if s.size == 0 {
			part = 1
		}
		saved += part * float64(s.size)
		room -= part * float64(s.size) * float64(s.length)
		if part < 1 {
			break
		}
	}
	return read - int64(math.Ceil(saved))
}
