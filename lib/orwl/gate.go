package orwl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// Gate holds back all requests of a number of tasks until each of them has
// inserted its own. Then it sorts the requests of each resource by their rank,
// refuses an order that can deadlock (section 2.0.1: liveness depends on the
// initial order) when the tasks hold their requests in the phases that the postings
// say, and inserts them all at once. So the initial order does not
// depend on which task came first.
type Gate struct {
	mu       sync.Mutex
	missing  int
	postings []gatePosting
	tasks    map[string]bool // that have come

	open chan struct{}
	err  error // set before open is closed
}

type gatePosting struct {
	Posting
	task string
}

// NewGate makes a gate for a number of tasks.
func NewGate(tasks int) *Gate {
	g := &Gate{missing: tasks, open: make(chan struct{}), tasks: make(map[string]bool)}
	if tasks <= 0 {
		close(g.open)
	}
	return g
}

// Insert says what a task will request; each task comes once, under a name of its own. The last
// task opens the gate: only it waits, until the owners of the locations have all requests or its ctx ends, and
// all tasks get its error. The handles must not be used until Wait returned.
func (g *Gate) Insert(ctx context.Context, task string, postings ...Posting) error {
	last, err := g.add(task, postings)
	if !last {
		return err
	}
	g.err = g.pass(ctx)
	close(g.open)
	return g.err
}

// add reports whether the task is the last one. After that nobody adds.
func (g *Gate) add(task string, postings []Posting) (last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing <= 0 {
		return false, fmt.Errorf("task %s comes to a gate that is open", task)
	}
	if g.tasks[task] {
		return false, fmt.Errorf("task %q comes to a gate twice: give each task a name of its own, and all its requests at "+
			"once", task)
	}
	if err := complete(postings); err != nil {
		return false, fmt.Errorf("task %s: %w", task, err)
	}
	g.tasks[task] = true
	for _, p := range postings {
		p.nameAfter(task)
		g.postings = append(g.postings, gatePosting{p, task})
	}
	g.missing--
	return g.missing == 0, nil
}

// pass inserts the requests of all tasks.
func (g *Gate) pass(ctx context.Context) error {
	slices.SortStableFunc(g.postings, func(a, b gatePosting) int { return cmp.Compare(a.Rank, b.Rank) })
	if err := g.order().Check(); err != nil {
		return err
	}
	return insertAll(ctx, g.sorted())
}

// Wait waits until the gate is open, and returns why the order was refused or
// the insertion failed: a *DeadlockError names the cycle. When ctx ends first, the requests
// are still at the gate and are inserted with the others: a task that gives up waits again,
// and then cancels its handles.
func (g *Gate) Wait(ctx context.Context) error {
	if err := park(ctx, g.open); err != nil {
		return fmt.Errorf("waiting for the start of all tasks: %w", err)
	}
	return g.err
}

func (g *Gate) sorted() []Posting {
	all := make([]Posting, len(g.postings))
	for i, p := range g.postings {
		all[i] = p.Posting
	}
	return all
}

func (g *Gate) order() Order {
	o, names := make(Order), newOrderNames()
	for _, p := range g.postings {
		name := names.name(p.resource.key(), p.resource.Name())
		o[name] = append(o[name], p.place(p.task))
	}
	return o
}
