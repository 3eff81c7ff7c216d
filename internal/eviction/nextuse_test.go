package eviction

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fairway/lib/seed"
)

type name string

func (n name) Compare(o name) int { return strings.Compare(string(n), string(o)) }

// Whatever the order before, each file that goes is one that a search through all that are left finds first.
func TestNextUseOrderAgainstSearch(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	goes := func(a, b NextRead[name]) bool { // a before b
		switch {
		case a.Last != b.Last:
			return b.Last
		case a.Read != b.Read:
			return b.Read
		case a.Read && a.Rank != b.Rank:
			return a.Rank > b.Rank
		}
		return a.Size > b.Size || a.Size == b.Size && a.File < b.File
	}
	for range 500 {
		files := make([]NextRead[name], rng.IntN(12))
		for i, at := range rng.Perm(len(files)) {
			files[i] = NextRead[name]{
				File: name(rune('a' + at)), Size: rng.Int64N(3), Read: rng.IntN(2) == 0, Rank: rng.Uint64N(4),
				Last: rng.IntN(3) == 0,
			}
		}
		left := slices.Clone(files)
		NextUseOrder(files)
		for _, f := range files {
			next := 0
			for i := range left {
				if goes(left[i], left[next]) {
					next = i
				}
			}
			if left[next] != f {
				t.Fatalf("FAIRWAY_SEED=%d: %+v goes where %+v should", first, f, left[next])
			}
			left = slices.Delete(left, next, next+1)
		}
	}
}
