package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/examples/mpi/mpi"
	"fairway/lib/sched"
)

// ways of Table 1: the row, and whether package sched waits and computes, with checkpoints or not.
var ways = []struct {
	name               string
	sched, checkpoints bool
	wait               func(*mpi.Request)
}{
	{"MPI_Test and Gosched", false, false, testAndYield},
	{"MPI_Wait", false, false, (*mpi.Request).Wait},
	{"sched, MPI_Testsome", true, true, nil},
	{"sched, without checkpoints", true, false, nil},
}

func testAndYield(r *mpi.Request) {
	for !r.Test() {
		runtime.Gosched()
	}
}

// reaction is a row of Table 1, in microseconds from the sending of a message until it is seen.
type reaction struct {
	Way       string  `json:"way"`
	Computing int     `json:"computing"`
	Mean      float64 `json:"mean_us"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Messages  int     `json:"messages"`
	Work      float64 `json:"work_ratio"` // of as many goroutines with nothing to answer; 0 without

	seen []time.Duration
}

// reactions measures the rows of Table 1, those of one number of tasks in turns.
func reactions(p plan) ([]reaction, error) {
	var rows []reaction
	for _, n := range p.computing {
		of := make([]reaction, len(ways))
		for range p.rounds {
			alone := undisturbed(n, p.each)
			for i, way := range ways {
				s := sched.New(sched.Config{})
				wait := func(r *mpi.Request) error { way.wait(r); return nil }
				if way.sched {
					requests := mpi.NewRequests(s, nil)
					wait = func(r *mpi.Request) error { return requests.Wait(context.Background(), r) }
				}
				w := start(s, n, way.sched, way.checkpoints)
				meet()
				seen, err := answer(wait)
				rate := w.stop()
				s.Close()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", way.name, err)
				}
				meet()
				of[i].Way, of[i].Computing, of[i].seen = way.name, n, append(of[i].seen, seen...)
				if n > 0 {
					of[i].Work += rate / alone / float64(p.rounds)
				}
			}
		}
		for i := range of {
			if err := of[i].sum(); err != nil {
				return nil, err
			}
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

func (r *reaction) sum() error {
	r.Messages = len(r.seen)
	if r.Messages == 0 {
		return errors.New("no message has come")
	}
	slices.Sort(r.seen)
	var sum time.Duration
	for _, d := range r.seen {
		sum += d
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	r.Mean, r.P50, r.P99 = us(sum)/float64(r.Messages), us(r.seen[r.Messages/2]), us(r.seen[r.Messages*99/100])
	return nil
}

// answer answers until the last message, and returns how late each was seen.
func answer(wait func(*mpi.Request) error) ([]time.Duration, error) {
	in, out := mpi.NewBuffer(messageSize), mpi.NewBuffer(messageSize)
	var seen []time.Duration
	for {
		if err := wait(mpi.Receive(in, 0, tagAsk)); err != nil {
			return nil, err
		}
		now := time.Now().UnixNano()
		at := int64(binary.LittleEndian.Uint64(in))
		if at == 0 {
			return seen, nil
		}
		seen = append(seen, time.Duration(now-at))
		mpi.Send(out, 0, tagAnswer).Wait()
	}
}

// work is goroutines or tasks that compute.
type work struct {
	over  atomic.Bool
	units []units
	began time.Time
	ended sync.WaitGroup
}

// units has a cache line of its own.
type units struct {
	n atomic.Uint64
	_ [56]byte
}

func start(s *sched.Scheduler, n int, tasks, checkpoints bool) *work {
	w := &work{units: make([]units, n), began: time.Now()}
	for i := range w.units {
		compute := func(between func()) {
			for x := uint64(i + 1); !w.over.Load(); between() {
				if x = unit(x); x == 0 {
					panic("the work came to nothing")
				}
				w.units[i].n.Add(1)
			}
		}
		w.ended.Go(func() {
			if !tasks {
				compute(func() {})
				return
			}
			_ = s.Run(context.Background(), func(t *sched.Task) error {
				if checkpoints {
					compute(t.Checkpoint)
				} else {
					compute(func() {})
				}
				return nil
			})
		})
	}
	return w
}

// stop ends the work and returns the units done per second.
func (w *work) stop() float64 {
	took := time.Since(w.began)
	w.over.Store(true)
	w.ended.Wait()
	done := uint64(0)
	for i := range w.units {
		done += w.units[i].n.Load()
	}
	return float64(done) / took.Seconds()
}

// undisturbed is what n goroutines compute per second with nothing to answer.
func undisturbed(n int, d time.Duration) float64 {
	if n == 0 {
		return 0
	}
	w := start(nil, n, false, false)
	time.Sleep(d)
	return w.stop()
}

// unit is about half a microsecond of computing.
func unit(x uint64) uint64 {
	for range 400 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}
