package copies

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// What several pilots have is what a map of each would have, and what it takes is counted for all.
func TestOthersAgainstMaps(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	inAll := int64(0)
	pilots, model := make([]Others, 3), make([]map[taskqueue.FileRef]int64, 3)
	for i := range pilots {
		pilots[i], model[i] = NewOthers(&inAll), map[taskqueue.FileRef]int64{}
	}
	for range 2000 {
		i := rng.IntN(len(pilots))
		o, m := &pilots[i], model[i]
		r := taskqueue.FileRef{LFN: fmt.Sprint("f", rng.IntN(100)), Version: taskqueue.Version(rng.IntN(2))}
		switch rng.IntN(20) {
		case 0:
			o.Clear()
			clear(m)
		case 1, 2, 3, 4, 5, 6:
			size, ok := o.Take(r)
			if want, had := m[r]; ok != had || size != want {
				t.Fatalf("FAIRWAY_SEED=%d: taking %v gives %d, %v instead of %d, %v", first, r, size, ok, want, had)
			}
			delete(m, r)
		default:
			size := int64(rng.IntN(5))
			o.Set(r, size)
			m[r] = size
		}
		takes := int64(0)
		for i := range pilots {
			if !maps.Equal(maps.Collect(pilots[i].All()), model[i]) {
				t.Fatalf("FAIRWAY_SEED=%d: there is %v instead of %v", first, maps.Collect(pilots[i].All()), model[i])
			}
			for r := range model[i] {
				takes += weightOf(r)
			}
		}
		if inAll != takes {
			t.Fatalf("FAIRWAY_SEED=%d: it takes %d instead of %d", first, inAll, takes)
		}
	}
	odd := func(r taskqueue.FileRef) bool { return r.Version == 1 }
	list := pilots[0].Without(odd)
	if slices.ContainsFunc(list, odd) || !slices.IsSortedFunc(list, func(a, b taskqueue.FileRef) int {
		return int(model[0][b] - model[0][a])
	}) {
		t.Errorf("FAIRWAY_SEED=%d: %v of %v", first, list, model[0])
	}
	for r := range model[0] {
		if !odd(r) && !slices.Contains(list, r) {
			t.Errorf("FAIRWAY_SEED=%d: %v is left out", first, r)
		}
	}
}

// One pilot cannot take more than its part, nor all together more than theirs.
func TestOthersFitWithinBounds(t *testing.T) {
	inAll := int64(0)
	o := NewOthers(&inAll)
	r := taskqueue.FileRef{LFN: "f"}
	for _, c := range []struct {
		own, others int64
		fits        bool
	}{
		{0, 0, true}, {Most - weight - 1, 0, true}, {Most - weight, 0, false}, {0, MostInAll - weight - 1, true},
		{0, MostInAll - weight, false},
	} {
		o.bytes, inAll = c.own, c.own+c.others
		if fits := o.Fits(r); fits != c.fits {
			t.Errorf("beside %d of its own and %d of others: %v", c.own, c.others, fits)
		}
	}
}
