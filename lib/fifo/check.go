package fifo

import (
	"cmp"
	"slices"
)

// Entry is one request of an initial order: which task makes it, how, and in which phases
// of the task it is held. A Last before First means First.
type Entry[T comparable] struct {
	Task        T
	Mode        Mode
	First, Last int
}

// Step is a phase of a task.
type Step[T comparable] struct {
	Task  T
	Phase int
}

// Own is the Location of a Wait of a step for an earlier one of its task.
const Own = -1

// Wait is one part of a Cycle: Step waits at Location for For, which releases a request there
// that stands before one that Step acquires and conflicts with it. At Own both are of one
// task, which comes to For first.
type Wait[T comparable] struct {
	Step     Step[T]
	Location int
	For      Step[T]
}

// Cycle is a circle of steps each of which waits for the next; the last waits
// for the first.
type Cycle[T comparable] []Wait[T]

// Check reports whether tasks can deadlock when the queues start as given, one list per
// location, head first. A task goes through its phases in their order: it begins each by
// acquiring what it holds from there on, and ends it by releasing what it holds until there.
// A task that holds everything at once has one phase.
//
// A step, which is a phase of a task, waits for the step before it, and where a request
// that it acquires stands behind one that conflicts, for the step that releases that one. The
// tasks can deadlock exactly when these waits have a cycle. Check returns nil when there is
// none, and otherwise a cycle, a shortest one through the step at which it was found. A
// step whose own requests conflict waits for itself.
//
// For iterative tasks that post each next request before they release the present one, the
// same condition on the initial order is sufficient for every iteration (for one phase:
// Clauss and Gustedt, Iterative Computations with Ordered Read-Write Locks). Of two
// requests that conflict the one that stands first is released first, so its next one is posted
// first: the order of those that conflict is the same in every iteration. Hence what a step
// waits for is in its own iteration, where there is no cycle, or in the one before.
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

// waitGraph has an edge from the step that acquires a request to the steps that release
// those of the group right before it, and from each step to the one before it of its task.
// Of two neighbouring groups at least one is a single write, so there are at most two edges for
// each entry, and one for each step. Their transitive closure has all conflicts, since the
// step that releases a request is that which acquires it, or comes after it.
type waitGraph[T comparable] struct {
	steps    []Step[T]
	waits    [][]waitEdge // by waiting step
	blocked  [][]int32    // by the step waited for
	open     []int32      // number of waits not yet stripped
	stripped []bool
}

type waitEdge struct {
	on       int32
	location int32
}

func newWaitGraph[T comparable](locations [][]Entry[T]) *waitGraph[T] {
	g := &waitGraph[T]{}
	index := make(map[Step[T]]int32)
	for l, entries := range locations {
		acquire, release := make([]int32, len(entries)), make([]int32, len(entries))
		for i, e := range entries {
			acquire[i] = g.node(index, Step[T]{e.Task, e.First})
			release[i] = g.node(index, Step[T]{e.Task, max(e.First, e.Last)})
		}
		before, group := 0, 0 // start of the group before, and of the current one
		for i, e := range entries {
			if i > 0 && (e.Mode == Write || entries[i-1].Mode == Write) {
				before, group = group, i
			}
			for _, on := range release[before:group] {
				g.edge(acquire[i], on, int32(l))
			}
		}
	}
	for _, own := range g.byTask() {
		for i, step := range own[1:] {
			g.edge(step, own[i], Own)
		}
	}
	return g
}

// byTask returns the steps of each task, in their order.
func (g *waitGraph[T]) byTask() (all [][]int32) {
	at := make(map[T]int)
	for n, s := range g.steps {
		i, ok := at[s.Task]
		if !ok {
			i = len(all)
			at[s.Task] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], int32(n))
	}
	for _, own := range all {
		slices.SortFunc(own, func(a, b int32) int { return cmp.Compare(g.steps[a].Phase, g.steps[b].Phase) })
	}
	return all
}

func (g *waitGraph[T]) node(index map[Step[T]]int32, s Step[T]) int32 {
	n, ok := index[s]
	if !ok {
		n = int32(len(g.steps))
		index[s] = n
		g.steps = append(g.steps, s)
		g.waits = append(g.waits, nil)
		g.blocked = append(g.blocked, nil)
		g.open = append(g.open, 0)
	}
	return n
}

func (g *waitGraph[T]) edge(step, on, location int32) {
	g.waits[step] = append(g.waits[step], waitEdge{on: on, location: location})
	g.blocked[on] = append(g.blocked[on], step)
	g.open[step]++
}

// strip removes steps that wait for nobody until none is left, as running them
// would, and returns a step that remains, or -1.
func (g *waitGraph[T]) strip() int32 {
	g.stripped = make([]bool, len(g.steps))
	var free []int32
	for n := range g.steps {
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
	for n := range g.steps {
		if !g.stripped[n] {
			return int32(n)
		}
	}
	return -1
}

// onCycle follows waits from a stuck step, which waits for another stuck one,
// until a step comes again.
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
		back = append(back, Wait[T]{Step: g.steps[a.from], Location: int(a.location), For: g.steps[n]})
		if n = a.from; n == start {
			break
		}
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
