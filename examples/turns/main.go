// Command turns has two tasks share memory and take strict turns, without a channel or a condition
// variable (docs/go.md).
package main

import (
	"context"
	"fmt"
	"sync"

	"fairway/lib/orwl"
)

func main() {
	ctx := context.Background()
	counter, err := orwl.New("counter", 8) // memory for one int64, all zero
	if err != nil {
		panic(err)
	}
	pairs := make([]orwl.Pair, 2)
	for i := range pairs {
		pairs[i].WriteRequest(counter) // task 0 is first in the queue, task 1 second
	}
	var tasks sync.WaitGroup
	for i := range pairs {
		tasks.Go(func() {
			for range 2 {
				if err := pairs[i].Acquire(ctx); err != nil {
					panic(err)
				}
				n, _ := orwl.WriteAs[int64](&pairs[i])
				n[0]++
				fmt.Println("task", i, "counts to", n[0])
				pairs[i].Release() // requests the next turn, then releases this one
			}
			pairs[i].Cancel() // takes no further turn
		})
	}
	tasks.Wait()
}
