package orwl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/internal/fifo"
)

// Place is one request in an initial order.
type Place struct {
	Task string
	Mode Mode
}

// Order is the initial order of requests at each location, by name, first to
// last.
type Order map[string][]Place

// locationKey tells locations apart that have the same name.
type locationKey struct {
	owner string // the process
	id    uint64
}

// orderNames gives each location of an Order a name of its own: a number
// follows where several have the same.
type orderNames struct {
	of    map[locationKey]string
	taken map[string]bool
}

func newOrderNames() *orderNames {
	return &orderNames{of: make(map[locationKey]string), taken: make(map[string]bool)}
}

func (n *orderNames) name(k locationKey, name string) string {
	if own, ok := n.of[k]; ok {
		return own
	}
	own := name
	for i := 2; n.taken[own]; i++ {
		own = fmt.Sprintf("%s (%d)", name, i)
	}
	n.of[k], n.taken[own] = own, true
	return own
}

// OrderOf returns the present order of requests in the locations, under the
// names of their handles; a handle without a name counts as a task of its own.
// Of locations with the same name the second one is called "name (2)", and so on.
func OrderOf(locations ...*Location) Order {
	o, names := make(Order), newOrderNames()
	for _, l := range locations {
		at := names.name(l.key(), l.name)
		o[at] = nil
		l.lock()
		for r := l.queue.Head(); r != nil; r = r.Next() {
			name := r.Owner.Name
			if name == "" {
				name = fmt.Sprintf("handle %p", r.Owner)
			}
			o[at] = append(o[at], Place{Task: name, Mode: r.Mode()})
		}
		l.mu.Unlock()
	}
	return o
}

// Wait is one step of a cycle: Task waits at Location for For.
type Wait struct{ Task, Location, For string }

func (w Wait) String() string {
	return fmt.Sprintf("%s waits at %s for %s", w.Task, w.Location, w.For)
}

// DeadlockError says that an initial order can deadlock, and how.
type DeadlockError struct{ Cycle []Wait }

func (e *DeadlockError) Error() string {
	return "the initial order can deadlock: " + describe(e.Cycle)
}

func describe(cycle []Wait) string {
	steps := make([]string, len(cycle))
	for i, w := range cycle {
		steps[i] = w.String()
	}
	return strings.Join(steps, ", ")
}

// Check returns a *DeadlockError when tasks that start in this order can
// deadlock, which is exactly when "u stands before v somewhere and they
// conflict" has a cycle.
func (o Order) Check() error {
	names := slices.Sorted(maps.Keys(o))
	fifos := make([][]fifo.Entry[string], len(names))
	for i, name := range names {
		for _, p := range o[name] {
			fifos[i] = append(fifos[i], fifo.Entry[string]{Task: p.Task, Mode: p.Mode})
		}
	}
	cycle := fifo.Check(fifos)
	if cycle == nil {
		return nil
	}
	e := &DeadlockError{}
	for _, w := range cycle {
		e.Cycle = append(e.Cycle, Wait{Task: w.Task, Location: names[w.Location], For: w.For})
	}
	return e
}
