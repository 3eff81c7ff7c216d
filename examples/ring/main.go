// Command ring is Listing 7 of the paper on a directed ring: each task updates
// the vector that it owns with the average of its own and its neighbour's, in
// place. The order of the requests alone decides what is computed, so every run
// gives the same bits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"fairway/lib/orwl"
)

func main() {
	tasks := flag.Int("tasks", 8, "tasks on the ring")
	iterations := flag.Int("iterations", 1000, "iterations of each task")
	size := flag.Int("size", 1000, "elements of each vector")
	flag.Parse()
	if err := run(*tasks, *iterations, *size); err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1)
	}
}

func run(tasks, iterations, size int) error {
	ctx := context.Background()
	locations := make([]*orwl.Location, tasks)
	for i := range locations {
		l, err := orwl.New(fmt.Sprint("vector ", i), 8*size)
		if err != nil {
			return err
		}
		l.Initialize(func(b []byte) { fill(orwl.BytesAs[float64](b), i) })
		locations[i] = l
	}
	// The gate inserts all first requests by rank, whichever task comes first,
	// and refuses an order that can deadlock.
	gate := orwl.NewGate(tasks)
	var all sync.WaitGroup
	errs := make([]error, tasks)
	start := time.Now()
	for i := range tasks {
		all.Go(func() {
			errs[i] = average(ctx, gate, i, locations[i], locations[(i+1)%tasks], iterations)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	took := time.Since(start)
	if !check(ctx, locations, iterations, size) {
		return errors.New("other bits than one task after the other")
	}
	fmt.Printf("%d tasks, %d iterations: %v for each update, the same bits as one task after the other\n",
		tasks, iterations, took/time.Duration(tasks*iterations))
	return nil
}

func fill(v []float64, task int) {
	for k := range v {
		v[k] = float64(task*task + k)
	}
}

// average is the recurring task: it holds both locks, computes, and posts the
// requests of its next iteration before it lets go.
func average(ctx context.Context, gate *orwl.Gate, task int, own, neighbour *orwl.Location, iterations int) error {
	var here, there orwl.Pair
	if err := gate.Insert(
		ctx, fmt.Sprint("task ", task), here.Writing(own).At(task), there.Reading(neighbour).At(task),
	); err != nil {
		return err
	}
	if err := gate.Wait(ctx); err != nil {
		return err
	}
	pairs := orwl.Pairs{&here, &there}
	for range iterations {
		if err := pairs.Acquire(ctx); err != nil {
			return err
		}
		h, err := orwl.WriteAs[float64](&here)
		if err != nil {
			return err
		}
		n, err := orwl.ReadAs[float64](&there)
		if err != nil {
			return err
		}
		for k := range h {
			h[k] = (h[k] + n[k]) / 2
		}
		if err := pairs.Release(); err != nil {
			return err
		}
	}
	return pairs.Cancel()
}

// check computes the same one task after the other.
func check(ctx context.Context, locations []*orwl.Location, iterations, size int) bool {
	vectors := make([][]float64, len(locations))
	for i := range vectors {
		vectors[i] = make([]float64, size)
		fill(vectors[i], i)
	}
	for range iterations {
		for i, v := range vectors {
			for k, n := range vectors[(i+1)%len(vectors)] {
				v[k] = (v[k] + n) / 2
			}
		}
	}
	for i, l := range locations {
		var h orwl.Handle
		if h.ReadRequest(l) != nil || h.Acquire(ctx) != nil {
			return false
		}
		v, err := orwl.ReadAs[float64](&h)
		if err != nil || !slices.Equal(v, vectors[i]) {
			return false
		}
	}
	return true
}
