package sim

import (
	"slices"
	"testing"

	"fairway/internal/cache"
	"fairway/internal/dispatch"
	"fairway/internal/eviction"
	"fairway/lib/seed"
)

// The model's caches choose their victims with eviction.Order, a node's with cache.LRU.
// What the simulator measures of the default policy holds for nodes because both choose
// the same: with the hints of the TaskQueue and without, whatever is in use.
func TestModelEvictsWhatANodeEvicts(t *testing.T) {
	r := seed.Source(t)
	refs := make([]dispatch.FileRef, 24)
	for i := range refs {
		refs[i] = dispatch.FileRef{LFN: string(rune('a' + i/2)), Version: 1, Tag: dispatch.Tag(i%2 + 1)}
	}
	for range 200 {
		c := newComparedCaches(t)
		for range 60 {
			f := refs[r.IntN(len(refs))]
			switch r.IntN(6) {
			case 0, 1:
				c.store(f, r.Int64N(4))
			case 2, 3:
				c.use(f)
			case 4:
				c.drop(f)
			case 5:
				next := map[dispatch.FileRef]uint64{}
				for _, f := range refs {
					if r.IntN(3) > 0 {
						next[f] = r.Uint64N(8)
					}
				}
				c.hint(next, r.IntN(len(refs)+1))
			}
			inUse := refs[r.IntN(len(refs))]
			if model, node := c.victims(inUse); !slices.Equal(model, node) {
				t.Fatalf("the model gives up %v,\na node %v", model, node)
			}
		}
	}
}

// comparedCaches are the books of one cache, kept by both.
type comparedCaches struct {
	order *eviction.Order[dispatch.FileRef]
	lru   *cache.LRU
	sizes map[dispatch.FileRef]int64 // of what is there
}

func newComparedCaches(t *testing.T) *comparedCaches {
	order, err := eviction.New[dispatch.FileRef](eviction.NextUse)
	if err != nil {
		t.Fatal(err)
	}
	return &comparedCaches{order: order, lru: cache.NewLRU(), sizes: map[dispatch.FileRef]int64{}}
}

func nodeRef(f dispatch.FileRef) cache.Ref {
	return cache.Ref{LFN: f.LFN, Version: uint32(f.Version), Tag: uint64(f.Tag)}
}

func (c *comparedCaches) store(f dispatch.FileRef, size int64) {
	c.sizes[f] = size
	c.order.Store(f, size, float64(size))
	c.lru.Used(nodeRef(f))
}

func (c *comparedCaches) use(f dispatch.FileRef) {
	if _, ok := c.sizes[f]; ok {
		c.order.Use(f)
		c.lru.Used(nodeRef(f))
	}
}

func (c *comparedCaches) drop(f dispatch.FileRef) {
	delete(c.sizes, f)
	c.order.Drop(f)
	c.lru.Gone(nodeRef(f))
}

// hint sends both what the TaskQueue would send for what is there and these next
// uses, cut off after limit files. Those that nobody will read are the stale ones.
func (c *comparedCaches) hint(next map[dispatch.FileRef]uint64, limit int) {
	var files []dispatch.NextRead
	for f, size := range c.sizes {
		rank, ok := next[f]
		files = append(files, dispatch.NextRead{File: f, Size: size, Read: ok, Rank: rank})
	}
	dispatch.NextUseOrder(files)
	var order []dispatch.FileRef
	var hints []cache.Ref
	stale := 0
	for _, f := range files[:min(limit, len(files))] {
		if _, ok := next[f.File]; !ok {
			stale++
		}
		order, hints = append(order, f.File), append(hints, nodeRef(f.File))
	}
	c.order.Follow(order, stale)
	c.lru.SetHints(hints)
}

// victims are all that may go, in the order in which each gives them up.
func (c *comparedCaches) victims(inUse dispatch.FileRef) (model, node []cache.Ref) {
	gone := map[dispatch.FileRef]bool{inUse: true}
	for {
		f, ok := c.order.First(func(f dispatch.FileRef) bool { return !gone[f] })
		if !ok {
			break
		}
		gone[f] = true
		model = append(model, nodeRef(f))
	}
	for ref := range c.lru.Order() {
		if ref != nodeRef(inUse) {
			node = append(node, ref)
		}
	}
	return model, node
}
