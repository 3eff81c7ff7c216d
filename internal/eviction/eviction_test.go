package eviction

import (
	"cmp"
	"slices"
	"testing"

	"fairway/lib/seed"
)

// A copy that nobody may read goes first, however often it was used before.
func TestStaleCopiesGoFirst(t *testing.T) {
	stale, read := "a tag 1", "a tag 2"
	for _, policy := range Policies {
		o := order[string](t, policy)
		o.Store(read, 10, 1)
		o.Store(stale, 10, 1)
		for range 3 {
			o.Use(stale)
		}
		o.Follow([]string{stale, read}, 1)
		for f := range o.Going() {
			if f != stale {
				t.Errorf("%s: %q goes before %q", policy, f, stale)
			}
			break
		}
	}
}

func order[F comparable](t *testing.T, policy Policy) *Order[F] {
	t.Helper()
	o, err := New[F](policy)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What each policy gives up first of files that were used at the times that the digits say.
func TestPolicies(t *testing.T) {
	const uses = "aabbbccddddeaf" // a is stored first, e was used once
	want := map[Policy]string{
		FIFO: "abcdef", LRU: "bcdeaf", LFU: "efcbad", LRUK: "efabcd", LFUStar: "ef", LFUAging: "efcbad", NextUse: "fdbcea",
	}
	for policy, files := range want {
		o := order[string](t, policy)
		for _, f := range uses {
			o.Store(string(f), 1, 1)
		}
		o.Follow([]string{"f", "gone", "d", "f"}, 0)
		got := ""
		for f := range o.Going() {
			got += f
		}
		if got != files {
			t.Errorf("%s: %s go in this order, not %s", policy, got, files)
		}
	}
}

// However files come, are used and go: what goes first is what the least recent use and the
// order of the TaskQueue say.
func TestNextUseIsTheOrderThenTheLeastRecentlyUsed(t *testing.T) {
	r := seed.Source(t)
	for _, policy := range []Policy{LRU, NextUse} {
		for range 200 {
			o, used := order[int](t, policy), map[int]int{}
			var told []int
			stale := 0
			for now := range 60 {
				f := r.IntN(24)
				_, there := used[f]
				switch r.IntN(6) {
				case 0, 1:
					o.Store(f, 1, 1)
					used[f] = now
				case 2, 3:
					o.Use(f)
					if there {
						used[f] = now
					}
				case 4:
					o.Drop(f)
					delete(used, f)
				case 5:
					told = r.Perm(24)[:r.IntN(25)]
					stale = r.IntN(len(told) + 1)
					o.Follow(told, stale)
				}
				place := func(f int) int {
					if i := slices.Index(told, f); i >= 0 && (policy == NextUse || i < stale) {
						if policy == LRU {
							return 0
						}
						return i
					}
					return len(told) + 1
				}
				var want []int
				for f := range used {
					want = append(want, f)
				}
				slices.SortFunc(want, func(a, b int) int {
					return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(used[a], used[b]))
				})
				if got := slices.Collect(o.Going()); !slices.Equal(got, want) {
					t.Fatalf("%s: %v go, not %v", policy, got, want)
				}
			}
		}
	}
}
