package fifo

import (
	"testing"

	"pgregory.net/rapid"

	"fairway/test/seed"
)

// deadlocks runs the system: a task ends when it is granted everything, and
// then releases all.
func deadlocks(locations [][]Entry[int]) bool {
	queues := make([]Queue[int], len(locations))
	reqs := make(map[int][]*Request[int])
	at := make(map[*Request[int]]int)
	for l, entries := range locations {
		for _, e := range entries {
			r := &Request[int]{Owner: e.Task}
			reqs[e.Task] = append(reqs[e.Task], r)
			at[r] = l
			queues[l].Insert(r, e.Mode)
		}
	}
	for progress := true; progress; {
		progress = false
		for task, rs := range reqs {
			if !allGranted(rs) {
				continue
			}
			for _, r := range rs {
				queues[at[r]].Release(r)
			}
			delete(reqs, task)
			progress = true
		}
	}
	return len(reqs) > 0
}

func allGranted(rs []*Request[int]) bool {
	for _, r := range rs {
		if !r.Granted() {
			return false
		}
	}
	return true
}

// holds says whether each wait of the cycle is true of the initial order.
func (c Cycle[T]) holds(locations [][]Entry[T]) bool {
	for i, w := range c {
		if w.For != c[(i+1)%len(c)].Task || !standsBefore(locations[w.Location], w.For, w.Task) {
			return false
		}
	}
	return len(c) > 0
}

func standsBefore[T comparable](entries []Entry[T], u, v T) bool {
	for i, a := range entries {
		for _, b := range entries[i+1:] {
			if a.Task == u && b.Task == v && (a.Mode == Write || b.Mode == Write) {
				return true
			}
		}
	}
	return false
}

func checkAgainstRun(t interface{ Fatalf(string, ...any) }, locations [][]Entry[int]) bool {
	cycle := Check(locations)
	if stuck := deadlocks(locations); stuck != (cycle != nil) {
		t.Fatalf("%v: deadlocks: %v; Check: %v", locations, stuck, cycle)
	}
	if cycle != nil && !cycle.holds(locations) {
		t.Fatalf("%v: %v is no cycle of waits", locations, cycle)
	}
	return cycle != nil
}

func TestCheckAgainstBruteForce(t *testing.T) {
	rng := seed.Source(t)
	stuck := 0
	const systems = 5000
	for range systems {
		tasks := 1 + rng.IntN(5)
		locations := make([][]Entry[int], 1+rng.IntN(4))
		for l := range locations {
			for range rng.IntN(5) {
				locations[l] = append(locations[l], Entry[int]{rng.IntN(tasks), Mode(rng.IntN(2))})
			}
		}
		if checkAgainstRun(t, locations) {
			stuck++
		}
	}
	if stuck == 0 || stuck == systems {
		t.Fatalf("%d of %d systems deadlock: the test shows nothing", stuck, systems)
	}
}

func TestCheckProperty(t *testing.T) {
	entry := rapid.Custom(func(t *rapid.T) Entry[int] {
		return Entry[int]{rapid.IntRange(0, 5).Draw(t, "task"), Mode(rapid.IntRange(0, 1).Draw(t, "mode"))}
	})
	system := rapid.SliceOfN(rapid.SliceOfN(entry, 0, 6), 1, 5)
	rapid.Check(t, func(t *rapid.T) { checkAgainstRun(t, system.Draw(t, "locations")) })
}

func TestCheckNamesTheCycle(t *testing.T) {
	cycle := Check([][]Entry[string]{
		{{"a", Write}, {"b", Read}},
		{{"b", Write}, {"c", Read}, {"d", Read}},
		{{"d", Read}, {"e", Read}, {"a", Write}},
	})
	want := Cycle[string]{{"a", 2, "d"}, {"d", 1, "b"}, {"b", 0, "a"}}
	if len(cycle) != 3 {
		t.Fatalf("got %v, want a turn of %v", cycle, want)
	}
	for _, w := range cycle {
		if w != want[0] && w != want[1] && w != want[2] {
			t.Fatalf("got %v, want a turn of %v", cycle, want)
		}
	}
}

// Where writes stand between groups of readers there are many more conflicts
// than requests. Check must not visit them one by one.
func TestCheckGrowsLinearly(t *testing.T) {
	const tasks = 1000
	locations := make([][]Entry[int], 50)
	for l := range locations {
		for k := range 20 {
			locations[l] = append(locations[l], Entry[int]{tasks + l*20 + k, Write})
			for task := range tasks {
				if task%20 == k {
					locations[l] = append(locations[l], Entry[int]{task, Read})
				}
			}
		}
	}
	g := newWaitGraph(locations)
	edges, entries := 0, 0
	for _, w := range g.waits {
		edges += len(w)
	}
	for _, l := range locations {
		entries += len(l)
	}
	if edges > 2*entries {
		t.Fatalf("%d edges for %d entries", edges, entries)
	}
	if c := Check(locations); c != nil {
		t.Fatalf("unexpected cycle %v", c)
	}
}
