package orwl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"fairway/lib/orwl"
)

// A task takes its place in the queue, does something else, and waits for its turn when
// it needs the data.
func ExampleHandle() {
	ctx := context.Background()
	temperature, err := orwl.New("temperature", 8*3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var writer, reader orwl.Handle
	writer.WriteRequest(temperature)
	reader.ReadRequest(temperature) // behind the writer, whenever that releases
	var both sync.WaitGroup
	both.Go(func() {
		if reader.Acquire(ctx) == nil {
			t, _ := orwl.ReadAs[float64](&reader)
			fmt.Println(t)
			reader.Release()
		}
	})
	if writer.Acquire(ctx) == nil {
		t, _ := orwl.WriteAs[float64](&writer)
		t[1] = 20
		writer.Release()
	}
	both.Wait()
	// Output: [0 20 0]
}

// Two tasks take turns at a location. Release posts the request for the next turn.
func ExamplePair() {
	ctx := context.Background()
	counter, err := orwl.New("counter", 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	var tasks sync.WaitGroup
	pairs := make([]orwl.Pair, 2)
	for i := range pairs {
		pairs[i].WriteRequest(counter)
	}
	for i := range pairs {
		tasks.Go(func() {
			for range 2 {
				pairs[i].Acquire(ctx)
				n, _ := orwl.WriteAs[int64](&pairs[i])
				n[0]++
				fmt.Println("task", i, "counts to", n[0])
				pairs[i].Release()
			}
			pairs[i].Cancel()
		})
	}
	tasks.Wait()
	// Output:
	// task 0 counts to 1
	// task 1 counts to 2
	// task 0 counts to 3
	// task 1 counts to 4
}

// All tasks insert at a gate; none begins before the last has come, and an order that
// can deadlock is refused.
func ExampleGate() {
	ctx := context.Background()
	left, _ := orwl.New("left", 8)
	right, _ := orwl.New("right", 8)
	gate := orwl.NewGate(2)
	var a, b, c, d orwl.Handle
	gate.Insert(ctx, "one", a.Writing(left).At(0), b.Writing(right).At(1))
	gate.Insert(ctx, "two", c.Writing(right).At(0), d.Writing(left).At(1))
	err := gate.Wait(ctx)
	fmt.Println(err)
	var deadlock *orwl.DeadlockError
	fmt.Println(errors.As(err, &deadlock))
	// Output:
	// the initial order can deadlock: one waits at right for two, two waits at left for one
	// true
}

// An order that was made by hand is checked before anybody runs.
func ExampleOrder_Check() {
	o := orwl.Order{
		"x": {{Task: "p", Mode: orwl.Write}, {Task: "q", Mode: orwl.Read}},
		"y": {{Task: "q", Mode: orwl.Write}, {Task: "p", Mode: orwl.Write}},
	}
	fmt.Println(o.Check())
	// Output: the initial order can deadlock: p waits at y for q, q waits at x for p
}

// Tasks on a ring read the edges of their neighbours, release them, and then write their
// own. Since no task holds both at once, they cannot wait for each other; the gate must be told
// the phases, or it refuses this order.
func ExamplePosting_In() {
	ctx := context.Background()
	const tasks = 3
	edges := make([]*orwl.Location, tasks)
	for i := range edges {
		edges[i], _ = orwl.New(fmt.Sprint("edge ", i), 8)
		edges[i].Initialize(func(b []byte) { orwl.BytesAs[int64](b)[0] = int64(i) })
	}
	gate := orwl.NewGate(tasks)
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			var left, right, own orwl.Pair
			neighbours := orwl.Pairs{&left, &right}
			err := gate.Insert(ctx, fmt.Sprint("task ", i),
				left.Reading(edges[(i+tasks-1)%tasks]).In(0).At(0),
				right.Reading(edges[(i+1)%tasks]).In(0).At(0),
				own.Writing(edges[i]).In(1).At(1))
			if errors.Join(err, gate.Wait(ctx), neighbours.Acquire(ctx)) != nil {
				return
			}
			l, _ := orwl.ReadAs[int64](&left)
			r, _ := orwl.ReadAs[int64](&right)
			sum := l[0] + r[0]
			neighbours.Finish() // Release, in all iterations but the last
			if own.Acquire(ctx) == nil {
				v, _ := orwl.WriteAs[int64](&own)
				v[0] = sum
				own.Finish()
			}
		})
	}
	all.Wait()
	for _, e := range edges {
		var h orwl.Handle
		h.ReadRequest(e)
		h.Acquire(ctx)
		v, _ := orwl.ReadAs[int64](&h)
		fmt.Print(v[0], " ")
		h.Release()
	}
	// Output: 3 2 1
}

// Where nobody can say earlier what he needs, a call reads or writes a location as with a lock.
func ExampleWriteOnce() {
	ctx := context.Background()
	temperature, _ := orwl.New("temperature", 8*3)
	err := orwl.WriteOnce(ctx, temperature, func(t []float64) error { t[1] = 20; return nil })
	err = errors.Join(err, orwl.ReadOnce(ctx, temperature, func(t []float64) error { fmt.Println(t); return nil }))
	fmt.Println(err)
	// Output:
	// [0 20 0]
	// <nil>
}

// A reading as one call; readers that stand side by side share the location.
func ExampleReadOnce() {
	ctx := context.Background()
	counter, _ := orwl.New("counter", 8)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			_ = orwl.ReadOnce(ctx, counter, func(n []int64) error { fmt.Println(n[0]); return nil })
		})
	}
	readers.Wait()
	// Output:
	// 0
	// 0
	// 0
}

// In the last of several rounds, a pair posts no further request.
func ExamplePair_Last() {
	ctx := context.Background()
	counter, _ := orwl.New("counter", 8)
	var p orwl.Pair
	p.WriteRequest(counter)
	count := func(n []int64) error { n[0]++; fmt.Println(n[0]); return nil }
	for range 2 {
		orwl.Do(ctx, &p, count)
	}
	orwl.Do(ctx, p.Last(), count)
	fmt.Println(counter.Waiting(), "requests are left")
	// Output:
	// 1
	// 2
	// 3
	// 0 requests are left
}

// One stage makes numbers, the next squares them, the last prints them: while one is printed the
// next is squared, and the one after it made.
func ExamplePipeline() {
	ctx := context.Background()
	made, _ := orwl.New("made", 8)
	squared, _ := orwl.New("squared", 8)
	err := orwl.Pipeline(ctx, 3, []*orwl.Location{made, squared}, func(stage, round int, in, out []int64) error {
		switch stage {
		case 0:
			out[0] = int64(round)
		case 1:
			out[0] = in[0] * in[0]
		case 2:
			fmt.Println(in[0])
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0
	// 1
	// 4
	// <nil>
}

// Listing 7 of the paper on a ring: each task averages its own vector and that of its neighbour.
func ExampleRing() {
	ctx := context.Background()
	vectors := make([]*orwl.Location, 3)
	for i := range vectors {
		vectors[i], _ = orwl.New(fmt.Sprint("vector ", i), 8)
		vectors[i].Initialize(func(b []byte) { orwl.BytesAs[float64](b)[0] = float64(8 * i) })
	}
	err := orwl.Ring(ctx, 2, vectors, func(_ int, own, next []float64) error {
		own[0] = (own[0] + next[0]) / 2
		return nil
	})
	for _, v := range vectors {
		err = errors.Join(err, orwl.ReadOnce(ctx, v, func(x []float64) error { fmt.Print(x[0], " "); return nil }))
	}
	fmt.Println(err)
	// Output: 8 11 9 <nil>
}

// Heat in a rod: each point becomes the mean of what its neighbours were.
func ExampleStencil() {
	ctx := context.Background()
	rod := make([]*orwl.Location, 4)
	for i := range rod {
		rod[i], _ = orwl.New(fmt.Sprint("point ", i), 8)
	}
	err := orwl.WriteOnce(ctx, rod[0], func(t []float64) error { t[0] = 100; return nil })
	beside := func(i int) []int {
		switch i {
		case 0, len(rod) - 1:
			return nil // the ends stay as they are
		}
		return []int{i - 1, i + 1}
	}
	err = errors.Join(err, orwl.Stencil(ctx, 2, rod, beside, func(_ int, own []float64, around [][]float64) error {
		if len(around) > 0 {
			own[0] = (around[0][0] + around[1][0]) / 2
		}
		return nil
	}))
	for _, point := range rod {
		err = errors.Join(err, orwl.ReadOnce(ctx, point, func(t []float64) error { fmt.Print(t[0], " "); return nil }))
	}
	fmt.Println(err)
	// Output: 100 50 25 0 <nil>
}

// Keys for a group on two hosts. Each process loads its own.
func ExampleWriteKeys() {
	folder, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(folder)
	keys := filepath.Join(folder, "keys")
	err := orwl.WriteKeys(keys, []string{"node1:7000", "192.0.2.7:7000"})
	tls, loaded := orwl.LoadTLS(orwl.Keys(keys, 1))
	fmt.Println(len(tls.Certificates), err, loaded)
	// Output: 1 <nil> <nil>
}
