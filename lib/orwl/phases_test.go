package orwl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// stencilTask reads the edges of its neighbours, releases them, and then writes its own.
type stencilTask struct{ left, right, own Pair }

func (s *stencilTask) iterate() error {
	neighbours := Pairs{&s.left, &s.right}
	if err := neighbours.Acquire(background); err != nil {
		return err
	}
	a, err := ReadAs[float64](&s.left)
	b, errRight := ReadAs[float64](&s.right)
	if err := errors.Join(err, errRight); err != nil {
		return err
	}
	sum := a[0]/2 + b[0]
	if err := errors.Join(neighbours.Release(), s.own.Acquire(background)); err != nil {
		return err
	}
	v, err := WriteAs[float64](&s.own)
	if err != nil {
		return err
	}
	v[0] = v[0]/4 + sum
	return s.own.Release()
}

// The natural stencil starts through a gate, and computes what one task after the other
// computes.
func TestGateTakesAStencilInPhases(t *testing.T) {
	const tasks, iterations = 5, 40
	locs := make([]*Location, tasks)
	want := make([]float64, tasks)
	for i := range locs {
		want[i] = float64(i + 1)
		locs[i] = newLocation(t, fmt.Sprint("edge ", i), 8)
		locs[i].Initialize(func(b []byte) { BytesAs[float64](b)[0] = want[i] })
	}
	gate := NewGate(tasks)
	all := make([]stencilTask, tasks)
	for i := range all {
		s, left, right := &all[i], locs[(i+tasks-1)%tasks], locs[(i+1)%tasks]
		must(t, gate.Insert(background, fmt.Sprint("task ", i),
			s.left.Reading(left).In(0).At(0), s.right.Reading(right).In(0).At(0), s.own.Writing(locs[i]).In(1).At(1)))
	}
	must(t, gate.Wait(background))
	must(t, OrderOf(locs...).Check())
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			for range iterations {
				if err := all[i].iterate(); err != nil {
					t.Errorf("task %d: %v", i, err)
				}
			}
			must(t, Pairs{&all[i].left, &all[i].right, &all[i].own}.Cancel())
		})
	}
	running.Wait()
	for range iterations {
		before := slices.Clone(want)
		for i := range want {
			want[i] = before[i]/4 + (before[(i+tasks-1)%tasks]/2 + before[(i+1)%tasks])
		}
	}
	for i, l := range locs {
		var h Handle
		must(t, h.ReadRequest(l))
		if v, err := ReadAs[float64](&h); err != nil || v[0] != want[i] {
			t.Errorf("edge %d is %v (%v), want %v", i, v, err, want[i])
		}
	}
}

// Phases that wait for each other are refused, and the cycle says which.
func TestGateRefusesPhasesThatDeadlock(t *testing.T) {
	x, y := newLocation(t, "x", 8), newLocation(t, "y", 8)
	gate := NewGate(2)
	var a, b, c, d Handle
	gate.Insert(background, "one", a.Writing(x).In(1).At(0), b.Writing(y).In(0).At(1))
	gate.Insert(background, "two", c.Writing(y).In(1).At(0), d.Writing(x).In(0).At(1))
	var deadlock *DeadlockError
	if err := gate.Wait(background); !errors.As(err, &deadlock) || len(deadlock.Cycle) != 4 {
		t.Fatalf("%v", err)
	}
	for _, step := range []string{"one, phase 1 comes after one", "two, phase 1 comes after two"} {
		if !strings.Contains(deadlock.Error(), step) {
			t.Errorf("%q does not say %q", deadlock, step)
		}
	}
}

// Two requests of a task on one location may conflict where the first is released before the
// second is acquired, in whatever way they are ordered.
func TestSelfConflictInPhases(t *testing.T) {
	l := newLocation(t, "l", 8)
	var a, b Handle
	for name, refused := range map[string][]Posting{
		"at once":               {a.Writing(l), b.Reading(l)},
		"the wrong way round":   {a.Writing(l).In(1), b.Reading(l).In(0)},
		"overlapping":           {a.Writing(l).During(0, 1), b.Reading(l).In(1)},
		"the wrong way by rank": {a.Writing(l).In(0).At(1), b.Reading(l).In(1).At(0)},
	} {
		if err := Insert(background, refused...); !errors.Is(err, ErrSelfConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, Insert(background, a.Writing(l).In(0), b.Reading(l).In(1)))
	must(t, a.Acquire(background))
	must(t, a.Release())
	must(t, b.Acquire(background))
	must(t, b.Release())
}
