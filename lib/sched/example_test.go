package sched_test

import (
	"context"
	"fmt"
	"sync"

	"fairway/lib/sched"
)

// transfer stands for a pending operation of a message-passing library that can
// only be asked whether it is complete, such as an MPI_Request.
type transfer struct {
	mu       sync.Mutex
	complete bool
	size     int
}

func (t *transfer) finish(size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete, t.size = true, size
}

// testAny returns the index of a complete transfer, or -1, as MPI_Testany does.
func testAny(pending []*transfer) int {
	for i, t := range pending {
		t.mu.Lock()
		complete := t.complete
		t.mu.Unlock()
		if complete {
			return i
		}
	}
	return -1
}

// communication is the kind of Figure 1 of the paper: group keeps the array that
// testAny wants, and poll asks once for all.
type communication struct {
	pending  []*transfer
	requests []*sched.Request[*transfer, int]
}

func (c *communication) group(r *sched.Request[*transfer, int], joined bool) {
	if joined {
		c.pending = append(c.pending, r.Value)
		c.requests = append(c.requests, r)
		return
	}
	for i := range c.requests {
		if c.requests[i] == r {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			c.requests = append(c.requests[:i], c.requests[i+1:]...)
			return
		}
	}
}

func (c *communication) poll([]*sched.Request[*transfer, int]) {
	if i := testAny(c.pending); i >= 0 {
		c.requests[i].Done(c.pending[i].size, nil)
	}
}

// A library that can only be polled, waited for from many goroutines at once.
func ExampleRegister() {
	s := sched.New(sched.Config{})
	defer s.Close()
	c := &communication{}
	mpi := sched.Register(s, sched.Kind[*transfer, int]{Name: "mpi", Poll: c.poll, Group: c.group})

	var wg sync.WaitGroup
	sizes := make([]int, 3)
	for i := range sizes {
		t := &transfer{}
		wg.Go(func() { sizes[i], _ = mpi.Wait(context.Background(), t) })
		wg.Go(func() { t.finish(100 * (i + 1)) })
	}
	wg.Wait()
	fmt.Println(sizes)
	// Output: [100 200 300]
}

// A computation that answers events while it goes on.
func ExampleScheduler_Go() {
	s := sched.New(sched.Config{})
	defer s.Close()
	ctx := context.Background()
	sum := 0
	task := s.Go(ctx, func(t *sched.Task) error {
		for i := range 1000 {
			sum += i
			t.Checkpoint()
		}
		return nil
	})
	fmt.Println(task.Wait(ctx), sum)
	// Output: <nil> 499500
}
