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
		checkEquity(t, [][]Resource{resources(drawLocations(t))})
	})
}

// The same holds when some of the tasks are in other processes.
func TestRemoteEquity(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		locs := drawLocations(rt)
		s := new(Server)
		defer s.Close()
		s.Add(locs...)
		p := dialled(t, s, listen(t, "tcp"), new(Dialer))
		defer p.Close()
		mirrors := make([]*Mirror, len(locs))
		for i, l := range locs {
			mirrors[i] = mirror(t, p, l.Name())
		}
		checkEquity(rt, [][]Resource{resources(locs), resources(mirrors)})
	})
}

func drawLocations(t *rapid.T) []*Location {
	locs := make([]*Location, rapid.IntRange(1, 4).Draw(t, "locations"))
	for i := range locs {
		locs[i], _ = New(fmt.Sprint("l", i), 8)
	}
	return locs
}

func resources[R Resource](rs []R) []Resource {
	all := make([]Resource, len(rs))
	for i, r := range rs {
		all[i] = r
	}
	return all
}

// equityTask is a task with a pair for each location that it uses.
type equityTask struct {
	pairs Pairs
	uses  map[int]Mode
	done  atomic.Int32 // iterations
}

func (a *equityTask) conflicts(b *equityTask) bool {
	for l, m := range a.uses {
		if n, ok := b.uses[l]; ok && (m == Write || n == Write) {
			return true
		}
	}
	return false
}

// checkEquity lets random tasks iterate. Each of the views has the same
// locations, and each task uses one of them.
func checkEquity(t *rapid.T, views [][]Resource) {
	const iterations = 20
	tasks := make([]*equityTask, rapid.IntRange(1, 5).Draw(t, "tasks"))
	for i := range tasks {
		view := views[rapid.IntRange(0, len(views)-1).Draw(t, "view")]
		tasks[i] = insertEquityTask(t, view)
	}
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() {
			for n := range int32(iterations) {
				if err := task.pairs.Acquire(background); err != nil {
					t.Errorf("acquire: %v", err)
				}
				for j, other := range tasks {
					if d := other.done.Load() - n; j != i && task.conflicts(other) && (d < -1 || d > 1) {
						t.Errorf("task %d in iteration %d, task %d in %d", i, n, j, n+d)
					}
				}
				task.done.Store(n + 1)
				pass := task.pairs.Release
				if n == iterations-1 {
					pass = task.pairs.Finish
				}
				if err := pass(); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	all.Wait()
}

func insertEquityTask(t *rapid.T, view []Resource) *equityTask {
	task := new(equityTask)
	task.uses = rapid.MapOfN(rapid.IntRange(0, len(view)-1),
		rapid.SampledFrom([]Mode{Read, Write}), 1, len(view)).Draw(t, "uses")
	var postings []Posting
	for l, m := range task.uses {
		p := new(Pair)
		task.pairs = append(task.pairs, p)
		postings = append(postings, Posting{handle: p.now(), resource: view[l], mode: m})
	}
	if err := Insert(background, postings...); err != nil {
		t.Fatalf("insert: %v", err)
	}
	return task
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
