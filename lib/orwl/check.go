package orwl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/lib/fifo"
)

// Place is one request in an initial order. Its task holds it from the beginning of
// the phase First to the end of the phase Last; a Last before First means First. See
// Posting.In.
type Place struct {
	Task        string
	Mode        Mode
	First, Last int
}

// StepName returns the name of a phase of a task, as cycles show it and Period takes it:
// that of the task for phase 0, and "task, phase 1" and so on for the others.
func StepName(task string, phase int) string {
	if phase == 0 {
		return task
	}
	return fmt.Sprintf("%s, phase %d", task, phase)
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
// names of their handles, with the phases that these were posted with; a handle without a
// name counts as a task of its own.
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
			o[at] = append(o[at], Place{Task: name, Mode: r.Mode(), First: r.Owner.first, Last: r.Owner.last})
		}
		l.mu.Unlock()
	}
	return o
}

// Wait is one step of a cycle: Task waits at Location for For. Of a task with phases
// they are the StepNames. Without a Location both are of one task, which comes to For first.
type Wait struct{ Task, Location, For string }

func (w Wait) String() string {
	if w.Location == "" {
		return fmt.Sprintf("%s comes after %s", w.Task, w.For)
	}
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
// deadlock. For tasks that hold all at once that is exactly when "u stands before v
// somewhere and they conflict" has a cycle. Of a task with phases (Place) the step that
// acquires a request waits for the steps that release those it conflicts with, and each step
// for the one before; the tasks can deadlock exactly when these waits have a cycle. Both hold
// for every iteration of tasks with pairs.
func (o Order) Check() error {
	names := slices.Sorted(maps.Keys(o))
	fifos := make([][]fifo.Entry[string], len(names))
	for i, name := range names {
		for _, p := range o[name] {
			fifos[i] = append(fifos[i], fifo.Entry[string]{Task: p.Task, Mode: p.Mode, First: p.First, Last: p.Last})
		}
	}
	cycle := fifo.Check(fifos)
	if cycle == nil {
		return nil
	}
	e := &DeadlockError{}
	for _, w := range cycle {
		wait := Wait{Task: StepName(w.Step.Task, w.Step.Phase), For: StepName(w.For.Task, w.For.Phase)}
		if w.Location != fifo.Own {
			wait.Location = names[w.Location]
		}
		e.Cycle = append(e.Cycle, wait)
	}
	return e
}
