package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"fairway/lib/sched"
)

// A process that mpirun has not started is a world of its own, and sends to itself.
func TestMain(m *testing.M) {
	if err := Init(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	Finalize()
	os.Exit(code)
}

func TestRequestsAreFoundTogether(t *testing.T) {
	s := sched.New(sched.Config{})
	defer s.Close()
	q := NewRequests(s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const waiters, messages = 40, 25
	var all sync.WaitGroup
	for tag := range waiters {
		in, out := NewBuffer(1), NewBuffer(1)
		all.Go(func() {
			for k := range messages {
				r := Receive(in, 0, tag)
				if err := q.Wait(ctx, r); err != nil || in[0] != byte(k) {
					t.Errorf("tag %d, message %d: got %d, %v", tag, k, in[0], err)
					return
				}
			}
		})
		all.Go(func() {
			for k := range messages {
				out[0] = byte(k)
				if err := q.Wait(ctx, Send(out, 0, tag)); err != nil {
					t.Errorf("send with tag %d: %v", tag, err)
				}
			}
		})
	}
	all.Wait()
	if c := q.Counts(); c.Events < waiters*messages {
		t.Errorf("%+v", c)
	}
}

// A wait that is given up leaves its request under way, also for MPI.
func TestRequestOutlivesItsWait(t *testing.T) {
	s := sched.New(sched.Config{})
	defer s.Close()
	q := NewRequests(s, nil)
	in, out := NewBuffer(1), NewBuffer(1)
	r := Receive(in, 0, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := q.Wait(ctx, r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	out[0] = 7
	sent := Send(out, 0, 1000)
	for _, r := range []*Request{sent, r, r} { // the last is complete already
		if err := q.Wait(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if in[0] != 7 {
		t.Errorf("got %d", in[0])
	}
}
