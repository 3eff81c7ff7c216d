package orwl

import (
	"maps"
	"slices"
	"time"

	"fairway/lib/fifo"
)

// Limit is the cycle of waits that limits the steady rate.
type Limit struct {
	Cycle []Wait
	// Iterations is how many iterations one turn of the cycle spans.
	Iterations int
	// Time is the computing time of one turn.
	Time time.Duration
}

func (l Limit) String() string { return describe(l.Cycle) }

// Period predicts the time between two iterations in the steady state, when
// the tasks use pairs, start in this order, and compute for the given times,
// each on a processor of its own. It is the maximum cycle ratio of the waits:
// computing time over iterations spanned. Limit names a cycle that has it. A
// task that is missing in times takes none. Of a task with phases each one that
// acquires or releases a request has a time of its own, under its StepName. An order
// that can deadlock returns a *DeadlockError.
func (o Order) Period(times map[string]time.Duration) (time.Duration, Limit, error) {
	if err := o.Check(); err != nil {
		return 0, Limit{}, err
	}
	g := newEventGraph(o, times)
	best := Limit{Iterations: 1}
	for {
		// A cycle of positive weight at the present ratio has a higher one.
		cycle := g.positiveCycle(int64(best.Time), int64(best.Iterations))
		if cycle == nil {
			return best.Time / time.Duration(best.Iterations), best, nil
		}
		best = g.limit(cycle)
	}
}

// eventGraph has an edge from u to v when iteration n of v waits for
// iteration n - tokens of u. Its nodes are steps: phases of tasks.
type eventGraph struct {
	tasks []string // StepNames
	times []time.Duration
	edges []eventEdge
}

type eventEdge struct {
	from, to int
	tokens   int
	location string
}

func newEventGraph(o Order, times map[string]time.Duration) *eventGraph {
	g := &eventGraph{}
	index := make(map[fifo.Step[string]]int)
	phases := make(map[string][]int) // by task
	node := func(task string, phase int) int {
		step := fifo.Step[string]{Task: task, Phase: phase}
		i, ok := index[step]
		if !ok {
			i = len(g.tasks)
			index[step] = i
			phases[task] = append(phases[task], phase)
			g.tasks = append(g.tasks, StepName(task, phase))
			g.times = append(g.times, times[StepName(task, phase)])
		}
		return i
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		places := o[name]
		acquire, release := make([]int, len(places)), make([]int, len(places))
		for i, p := range places {
			acquire[i], release[i] = node(p.Task, p.First), node(p.Task, max(p.First, p.Last))
		}
		g.waits(name, places, acquire, release)
	}
	for _, task := range slices.Sorted(maps.Keys(phases)) {
		own := slices.Sorted(slices.Values(phases[task]))
		for i, phase := range own {
			next, tokens := own[0], 1
			if i+1 < len(own) {
				next, tokens = own[i+1], 0
			}
			g.edges = append(g.edges, eventEdge{from: node(task, phase), to: node(task, next), tokens: tokens})
		}
	}
	return g
}

// waits adds the edges at one location. The order repeats: behind the last
// place stands the first of the next iteration. Each place waits for the
// nearest places before it up to and including the nearest write; others
// follow from these.
func (g *eventGraph) waits(name string, places []Place, acquire, release []int) {
	n := len(places)
	if !slices.ContainsFunc(places, func(p Place) bool { return p.Mode == Write }) {
		return
	}
	for i, p := range places {
		for back := 1; back <= n; back++ {
			j, tokens := i-back, 0
			if j < 0 {
				j, tokens = j+n, 1
			}
			if p.Mode == Write || places[j].Mode == Write {
				g.edges = append(g.edges, eventEdge{from: release[j], to: acquire[i], tokens: tokens, location: name})
			}
			if places[j].Mode == Write {
				break
			}
		}
	}
}

// positiveCycle looks for a cycle whose time exceeds its tokens times
// total/count, by Bellman and Ford's longest paths in whole numbers.
func (g *eventGraph) positiveCycle(total, count int64) []eventEdge {
	dist := make([]int64, len(g.tasks))
	via := make([]int, len(g.tasks))
	for i := range via {
		via[i] = -1
	}
	last := -1
	for range len(g.tasks) + 1 {
		last = -1
		for i, e := range g.edges {
			d := dist[e.from] + int64(g.times[e.from])*count - int64(e.tokens)*total
			if d > dist[e.to] {
				dist[e.to], via[e.to], last = d, i, e.to
			}
		}
		if last < 0 {
			return nil
		}
	}
	return g.cycleBehind(last, via)
}

func (g *eventGraph) cycleBehind(n int, via []int) []eventEdge {
	for range g.tasks {
		n = g.edges[via[n]].from
	}
	var cycle []eventEdge
	for start := n; ; {
		e := g.edges[via[n]]
		cycle = append(cycle, e)
		if n = e.from; n == start {
			return cycle
		}
	}
}

func (g *eventGraph) limit(cycle []eventEdge) Limit {
	var l Limit
	for _, e := range cycle {
		l.Iterations += e.tokens
		l.Time += g.times[e.from]
		at := e.location
		if at == "" && e.tokens > 0 {
			at = "its own last iteration"
		}
		l.Cycle = append(l.Cycle, Wait{Task: g.tasks[e.to], Location: at, For: g.tasks[e.from]})
	}
	return l
}
