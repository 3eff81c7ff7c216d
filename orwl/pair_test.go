package orwl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Conflicting tasks never differ by more than one iteration, and no one sees
// another's work half done.
func TestEquity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		locs := make([]*Location, rapid.IntRange(1, 4).Draw(t, "locations"))
		for i := range locs {
			locs[i], _ = New(fmt.Sprint("l", i), 8)
		}
		type task struct {
			pairs Pairs
			uses  map[int]Mode
		}
		tasks := make([]task, rapid.IntRange(1, 5).Draw(t, "tasks"))
		for i := range tasks {
			tasks[i].uses = rapid.MapOfN(rapid.IntRange(0, len(locs)-1),
				rapid.SampledFrom([]Mode{Read, Write}), 1, len(locs)).Draw(t, "uses")
			var postings []Posting
			for l, m := range tasks[i].uses {
				p := new(Pair)
				tasks[i].pairs = append(tasks[i].pairs, p)
				postings = append(postings, Posting{handle: p.now(), resource: locs[l], mode: m})
			}
			if err := Insert(background, postings...); err != nil {
				t.Fatalf("insert: %v", err)
			}
		}
		const iterations = 20
		done := make([]atomic.Int32, len(tasks))
		conflict := func(a, b task) bool {
			for l, m := range a.uses {
				if n, ok := b.uses[l]; ok && (m == Write || n == Write) {
					return true
				}
			}
			return false
		}
		var all sync.WaitGroup
		for i, task := range tasks {
			all.Go(func() {
				for n := range int32(iterations) {
					if err := task.pairs.Acquire(background); err != nil {
						t.Errorf("acquire: %v", err)
					}
					for j := range tasks {
						if d := done[j].Load() - n; j != i && conflict(task, tasks[j]) && (d < -1 || d > 1) {
							t.Errorf("task %d in iteration %d, task %d in %d", i, n, j, n+d)
						}
					}
					done[i].Store(n + 1)
					if n == iterations-1 {
						task.pairs.Finish()
						return
					}
					if err := task.pairs.Release(); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
		all.Wait()
	})
}

// Listing 7 on a directed ring gives the same bits as running it one after the
// other, on every run.
func TestRing(t *testing.T) {
	const tasks, iterations = 7, 50
	values := make([]float64, tasks)
	for i := range values {
		values[i] = float64(i * i)
	}
	locs := make([]*Location, tasks)
	for i := range locs {
		locs[i] = newLocation(t, fmt.Sprint("l", i), 8)
		var h Handle
		must(t, h.WriteRequest(locs[i]))
		v, err := WriteAs[float64](&h)
		must(t, err)
		v[0] = values[i]
		must(t, h.Release())
	}
	gate := NewGate(tasks)
	here, there := make([]Pair, tasks), make([]Pair, tasks)
	for i := range tasks {
		must(t, gate.Insert(background, fmt.Sprint("task ", i),
			here[i].Writing(locs[i]).At(i), there[i].Reading(locs[(i+1)%tasks]).At(i)))
	}
	must(t, gate.Wait(background))
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			pairs := Pairs{&here[i], &there[i]}
			for range iterations {
				must(t, pairs.Acquire(background))
				h, _ := WriteAs[float64](&here[i])
				n, _ := ReadAs[float64](&there[i])
				h[0] = (h[0] + n[0]) / 2
				must(t, pairs.Release())
			}
			must(t, pairs.Cancel())
		})
	}
	all.Wait()
	for range iterations {
		for i := range values {
			values[i] = (values[i] + values[(i+1)%tasks]) / 2
		}
	}
	for i, l := range locs {
		var h Handle
		must(t, h.ReadRequest(l))
		v, err := ReadAs[float64](&h)
		must(t, err)
		if v[0] != values[i] {
			t.Errorf("location %d has %v, one after the other gives %v", i, v[0], values[i])
		}
	}
}

func TestPairEnds(t *testing.T) {
	l := newLocation(t, "l", 8)
	var p, q Pair
	must(t, p.WriteRequest(l))
	must(t, q.WriteRequest(l))
	must(t, p.Release())
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, q.Cancel())
	if l.Waiting() != 0 {
		t.Fatal("requests are left")
	}
	if err := p.Release(); !errors.Is(err, ErrNotHeld) {
		t.Fatal(err)
	}
}

func TestRefusedNextEndsPairs(t *testing.T) {
	free, full := newLocation(t, "free", 8), newLocation(t, "full", 8, MaxRequests(1))
	var a, b Pair
	must(t, a.WriteRequest(free))
	must(t, b.WriteRequest(full))
	pairs := Pairs{&a, &b}
	must(t, pairs.Acquire(background))
	if err := pairs.Release(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if free.Waiting() != 0 || full.Waiting() != 0 {
		t.Fatal("requests are left")
	}
}
