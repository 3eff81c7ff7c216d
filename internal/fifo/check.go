package fifo

// Entry is one request of an initial order: which task makes it, and how.
type Entry[T comparable] struct {
	Task T
	Mode Mode
}

// Wait is one step of a Cycle: Task waits at Location for For, which stands
// before it there and conflicts with it.
type Wait[T comparable] struct {
	Task     T
	Location int
	For      T
}

// Cycle is a circle of tasks each of which waits for the next; the last waits
// for the first.
type Cycle[T comparable] []Wait[T]

// Check says whether tasks that each acquire all their requests before they
// release any can deadlock when the queues start as given, one list per
// location, head first. They can exactly when the union over all locations of
// "u stands before v and they conflict" has a cycle. Check returns nil when
// there is none, and otherwise a cycle, a shortest one through the task at
// which it was found. A task that conflicts with itself waits for itself.
//
// For iterative tasks that post the next request before they release, the
// same condition on the initial order is sufficient for every iteration
// (Clauss and Gustedt, Iterative Computations with Ordered Read-Write Locks).
//
// Time and memory grow linearly with the number of entries.
func Check[T comparable](locations [][]Entry[T]) Cycle[T] {
	g := newWaitGraph(locations)
	stuck := g.strip()
	if stuck < 0 {
		return nil
	}
	return g.shortest(g.onCycle(stuck))
}

// waitGraph has an edge from each request's task to the tasks of the group
// right before it. Of two neighbouring groups at least one is a single write,
// so there are at most two edges for each entry, and their transitive closure
// is that of all conflicts.
type waitGraph[T comparable] struct {
	tasks    []T
	waits    [][]waitEdge // by waiting task
	blocked  [][]int32    // by the task waited for
	open     []int32      // number of waits not yet stripped
	stripped []bool
}

type waitEdge struct {
	on       int32
	location int32
}

func newWaitGraph[T comparable](locations [][]Entry[T]) *waitGraph[T] {
	g := &waitGraph[T]{}
	index := make(map[T]int32)
	for l, entries := range locations {
		nodes := make([]int32, len(entries))
		for i, e := range entries {
			nodes[i] = g.node(index, e.Task)
		}
		before, group := 0, 0 // start of the group before, and of the current one
		for i, e := range entries {
			if i > 0 && (e.Mode == Write || entries[i-1].Mode == Write) {
				before, group = group, i
			}
			for _, on := range nodes[before:group] {
				g.edge(nodes[i], on, int32(l))
			}
		}
	}
	return g
}

func (g *waitGraph[T]) node(index map[T]int32, task T) int32 {
	n, ok := index[task]
	if !ok {
		n = int32(len(g.tasks))
		index[task] = n
		g.tasks = append(g.tasks, task)
		g.waits = append(g.waits, nil)
		g.blocked = append(g.blocked, nil)
		g.open = append(g.open, 0)
	}
	return n
}

func (g *waitGraph[T]) edge(task, on, location int32) {
	g.waits[task] = append(g.waits[task], waitEdge{on: on, location: location})
	g.blocked[on] = append(g.blocked[on], task)
	g.open[task]++
}

// strip removes tasks that wait for nobody until none is left, as running them
// would, and returns a task that remains, or -1.
func (g *waitGraph[T]) strip() int32 {
	g.stripped = make([]bool, len(g.tasks))
	var free []int32
	for n := range g.tasks {
		if g.open[n] == 0 {
			free = append(free, int32(n))
		}
	}
	for len(free) > 0 {
		n := free[len(free)-1]
		free = free[:len(free)-1]
		g.stripped[n] = true
		for _, b := range g.blocked[n] {
			if g.open[b]--; g.open[b] == 0 {
				free = append(free, b)
			}
		}
	}
	for n := range g.tasks {
		if !g.stripped[n] {
			return int32(n)
		}
	}
	return -1
}

// onCycle follows waits from a stuck task, which waits for another stuck one,
// until a task comes again.
func (g *waitGraph[T]) onCycle(n int32) int32 {
	seen := make(map[int32]bool)
	for !seen[n] {
		seen[n] = true
		for _, w := range g.waits[n] {
			if !g.stripped[w.on] {
				n = w.on
				break
			}
		}
	}
	return n
}

// shortest returns a shortest cycle through start, by breadth-first search.
func (g *waitGraph[T]) shortest(start int32) Cycle[T] {
	type arrival struct{ from, location int32 }
	reached := make(map[int32]arrival)
	frontier := []int32{start}
	for i := 0; i < len(frontier); i++ {
		n := frontier[i]
		for _, w := range g.waits[n] {
			if _, ok := reached[w.on]; ok || g.stripped[w.on] {
				continue
			}
			reached[w.on] = arrival{from: n, location: w.location}
			frontier = append(frontier, w.on)
		}
		if _, ok := reached[start]; ok {
			break
		}
	}
	var back Cycle[T]
	for n := start; ; {
		a := reached[n]
		back = append(back, Wait[T]{Task: g.tasks[a.from], Location: int(a.location), For: g.tasks[n]})
		if n = a.from; n == start {
			break
		}
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
