package main

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/examples/mpi/mpi"
	"fairway/lib/sched"
)

// waitingWays are the rows of Table 2. In the first everything takes turns on one processor, as in
// the paper's user-level threads.
var waitingWays = []string{"MPI_Test and Gosched", "sched, MPI_Test for each", "sched, MPI_Testsome"}

// waiting is a row of Table 2.
type waiting struct {
	Way      string  `json:"way"`
	Waiters  int     `json:"waiters"`
	TaskMS   float64 `json:"task_ms"` // median
	Messages uint64  `json:"messages"`

	took []float64
}

func waitingCosts(p plan) ([]waiting, error) {
	var rows []waiting
	for _, way := range waitingWays {
		for _, n := range p.waiters {
			rows = append(rows, waiting{Way: way, Waiters: n})
		}
	}
	for range p.rounds {
		for i := range p.waiters {
			for j := range waitingWays {
				if err := rows[j*len(p.waiters)+i].measure(p.units); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range rows {
		slices.Sort(rows[i].took)
		rows[i].TaskMS = rows[i].took[len(rows[i].took)/2]
	}
	return rows, nil
}

// measure runs the task once beside its waiters.
func (w *waiting) measure(units int) error {
	s := sched.New(sched.Config{Slots: 1})
	defer s.Close()
	wait := func(r *mpi.Request) error { testAndYield(r); return nil }
	switch w.Way {
	case waitingWays[0]:
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	case waitingWays[1]:
		h := sched.Register(s, sched.Kind[*mpi.Request, struct{}]{Name: "each", Poll: testEach})
		wait = func(r *mpi.Request) error { _, err := h.Wait(context.Background(), r); return err }
	default:
		requests := mpi.NewRequests(s, nil)
		wait = func(r *mpi.Request) error { return requests.Wait(context.Background(), r) }
	}
	var all sync.WaitGroup
	var messages atomic.Uint64
	errs := make(chan error, w.Waiters)
	for k := range w.Waiters {
		all.Go(func() { errs <- receiveAll(firstWaiter+k, wait, &messages) })
	}
	meet()
	start := time.Now()
	err := w.compute(s, units)
	w.took = append(w.took, time.Since(start).Seconds()*1000)
	mpi.Send(mpi.NewBuffer(messageSize), 0, tagDone).Wait()
	all.Wait()
	w.Messages += messages.Load()
	for range w.Waiters {
		err = errors.Join(err, <-errs)
	}
	meet()
	return err
}

// compute is the task, which lets others go first after each unit.
func (w *waiting) compute(s *sched.Scheduler, units int) error {
	x := uint64(1)
	if w.Way == waitingWays[0] {
		for range units {
			x = unit(x)
			runtime.Gosched()
		}
		return nonzero(x)
	}
	return s.Run(context.Background(), func(t *sched.Task) error {
		for range units {
			x = unit(x)
			t.Checkpoint()
		}
		return nonzero(x)
	})
}

func nonzero(x uint64) error {
	if x == 0 {
		return errors.New("the work came to nothing")
	}
	return nil
}

func testEach(waiting []*sched.Request[*mpi.Request, struct{}]) {
	for _, r := range waiting {
		if r.Value.Test() {
			r.Done(struct{}{}, nil)
		}
	}
}

// receiveAll receives the messages of one waiter until the last.
func receiveAll(tag int, wait func(*mpi.Request) error, messages *atomic.Uint64) error {
	in := mpi.NewBuffer(messageSize)
	for {
		if err := wait(mpi.Receive(in, 0, tag)); err != nil {
			return err
		}
		if binary.LittleEndian.Uint64(in) == 0 {
			return nil
		}
		messages.Add(1)
	}
}
