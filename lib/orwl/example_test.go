package orwl_test

import (
	"context"
	"errors"
	"fmt"
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
