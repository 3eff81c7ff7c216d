package fifo

import (
	"testing"

	"pgregory.net/rapid"

	"fairway/lib/seed"
)

// phased is a task on its way through its phases, again and again.
type phased struct {
	requests   []phasedRequest
	phase      int
	iterations int // that are left
}

type phasedRequest struct {
	entry    Entry[int]
	location int
	now, new *Request[int] // the present request and the next one
}

const lastPhase = 3

// deadlocks runs the system: a task that is granted all it acquires in a phase releases what
// it holds until there, and goes on. Before the last iteration it posts the next request
// before it releases one.
func deadlocks(locations [][]Entry[int], iterations int) bool {
	queues := make([]Queue[int], len(locations))
	tasks := make(map[int]*phased)
	for l, entries := range locations {
		for _, e := range entries {
			t := tasks[e.Task]
			if t == nil {
				t = &phased{iterations: iterations}
				tasks[e.Task] = t
			}
			r := phasedRequest{e, l, new(Request[int]), new(Request[int])}
			t.requests = append(t.requests, r)
			queues[l].Insert(r.now, e.Mode)
		}
	}
	for progress := true; progress; {
		progress = false
		for name, t := range tasks {
			if !t.step(queues) {
				continue
			}
			progress = true
			if t.iterations == 0 {
				delete(tasks, name)
			}
		}
	}
	return len(tasks) > 0
}

// step goes through one phase, if everything for it is granted.
func (t *phased) step(queues []Queue[int]) bool {
	for _, r := range t.requests {
		if r.entry.First == t.phase && !r.now.Granted() {
			return false
		}
	}
	for i := range t.requests {
		r := &t.requests[i]
		if max(r.entry.First, r.entry.Last) != t.phase {
			continue
		}
		if t.iterations > 1 {
			queues[r.location].Insert(r.new, r.entry.Mode)
		}
		queues[r.location].Release(r.now)
		r.now, r.new = r.new, r.now
	}
	if t.phase++; t.phase > lastPhase {
		t.phase = 0
		t.iterations--
	}
	return true
}

// holds reports whether each wait of the cycle is true of the initial order.
func (c Cycle[T]) holds(locations [][]Entry[T]) bool {
	for i, w := range c {
		switch {
		case w.For != c[(i+1)%len(c)].Step:
			return false
		case w.Location == Own && (w.Step.Task != w.For.Task || w.Step.Phase <= w.For.Phase):
			return false
		case w.Location != Own && !standsBefore(locations[w.Location], w.For, w.Step):
			return false
		}
	}
	return len(c) > 0
}

func standsBefore[T comparable](entries []Entry[T], u, v Step[T]) bool {
	for i, a := range entries {
		for _, b := range entries[i+1:] {
			if a.Task == u.Task && max(a.First, a.Last) == u.Phase && b.Task == v.Task && b.First == v.Phase &&
				(a.Mode == Write || b.Mode == Write) {
				return true
			}
		}
	}
	return false
}

func checkAgainstRun(t interface{ Fatalf(string, ...any) }, locations [][]Entry[int]) bool {
	cycle := Check(locations)
	for _, iterations := range []int{1, 4} {
		if stuck := deadlocks(locations, iterations); stuck != (cycle != nil) {
			t.Fatalf("%v: deadlocks in %d iterations: %v; Check: %v", locations, iterations, stuck, cycle)
		}
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
	for i := range systems {
		phases := 1 + lastPhase*(i%2)
		tasks := 1 + rng.IntN(5)
		locations := make([][]Entry[int], 1+rng.IntN(4))
		for l := range locations {
			for range rng.IntN(5) {
				locations[l] = append(locations[l], Entry[int]{
					rng.IntN(tasks), Mode(rng.IntN(2)), rng.IntN(phases), rng.IntN(phases),
				})
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
		return Entry[int]{
			Task: rapid.IntRange(0, 5).Draw(t, "task"), Mode: Mode(rapid.IntRange(0, 1).Draw(t, "mode")),
			First: rapid.IntRange(0, lastPhase).Draw(t, "first"), Last: rapid.IntRange(0, lastPhase).Draw(t, "last"),
		}
	})
	system := rapid.SliceOfN(rapid.SliceOfN(entry, 0, 6), 1, 5)
	rapid.Check(t, func(t *rapid.T) { checkAgainstRun(t, system.Draw(t, "locations")) })
}

func TestCheckNamesTheCycle(t *testing.T) {
	cycle := Check([][]Entry[string]{
		{{Task: "a", Mode: Write}, {Task: "b"}},
		{{Task: "b", Mode: Write}, {Task: "c"}, {Task: "d"}},
		{{Task: "d"}, {Task: "e"}, {Task: "a", Mode: Write}},
	})
	a, b, d := Step[string]{Task: "a"}, Step[string]{Task: "b"}, Step[string]{Task: "d"}
	want := Cycle[string]{{a, 2, d}, {d, 1, b}, {b, 0, a}}
	if len(cycle) != 3 {
		t.Fatalf("got %v, want a turn of %v", cycle, want)
	}
	for _, w := range cycle {
		if w != want[0] && w != want[1] && w != want[2] {
			t.Fatalf("got %v, want a turn of %v", cycle, want)
		}
	}
}

// Tasks in a ring that write their own location, release it and then read their neighbours'
// cannot deadlock, though they could if they held all of that at once. Those of which
// each reads before it writes can.
func TestCheckTakesAStencilInPhases(t *testing.T) {
	const tasks = 5
	ring := func(write, read Entry[int]) (locations [][]Entry[int]) {
		for i := range tasks {
			w, left, right := write, read, read
			w.Task, left.Task, right.Task = i, (i+tasks-1)%tasks, (i+1)%tasks
			locations = append(locations, []Entry[int]{w, left, right})
		}
		return locations
	}
	if c := Check(ring(Entry[int]{Mode: Write}, Entry[int]{First: 1})); c != nil {
		t.Fatalf("writing, then reading: %v", c)
	}
	if Check(ring(Entry[int]{Mode: Write}, Entry[int]{})) == nil {
		t.Fatal("holding all at once cannot deadlock")
	}
	if Check(ring(Entry[int]{Mode: Write, First: 1}, Entry[int]{})) == nil {
		t.Fatal("reading what is to be written behind cannot deadlock")
	}
	if Check(ring(Entry[int]{Mode: Write, Last: 1}, Entry[int]{First: 1})) == nil {
		t.Fatal("holding the own location while reading the others cannot deadlock")
	}
}

// Where writes stand between groups of readers there are many more conflicts
// than requests. Check must not visit them one by one.
func TestCheckGrowsLinearly(t *testing.T) {
	const tasks = 1000
	locations := make([][]Entry[int], 50)
	for l := range locations {
		for k := range 20 {
			locations[l] = append(locations[l], Entry[int]{Task: tasks + l*20 + k, Mode: Write})
			for task := range tasks {
				if task%20 == k {
					locations[l] = append(locations[l], Entry[int]{Task: task})
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
