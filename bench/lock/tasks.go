package main

import (
	"context"

	"fairway/bench/measure"
	"fairway/lib/orwl"
	"fairway/lib/sched"
)

// turnsSched lets two computing tasks take turns, and for the yardstick two
// such tasks play ping-pong over channels.
func turnsSched(quick bool) (measure.Row, error) {
	s := sched.New(sched.Config{})
	defer s.Close()
	const each = 5_000
	return measure.Alternate("turns-sched", rounds(quick)/2,
		measure.Loop(each, func(n int) { taskTurns(s, n) }),
		measure.Loop(each, func(n int) { taskPingPong(s, n) }))
}

func taskTurns(s *sched.Scheduler, n int) {
	ctx := context.Background()
	l := location()
	pairs := make([]orwl.Pair, 2)
	tasks := make([]*sched.Task, 2)
	for i := range pairs {
		pairs[i].WriteRequest(l)
	}
	for i := range pairs {
		tasks[i] = s.Go(ctx, func(t *sched.Task) error {
			cycle(t.Context(), &pairs[i], n)
			return nil
		})
	}
	for _, t := range tasks {
		t.Wait(ctx)
	}
}

func taskPingPong(s *sched.Scheduler, n int) {
	ctx := context.Background()
	ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
	other := s.Go(ctx, func(t *sched.Task) error {
		for range n {
			if _, err := sched.Receive(t.Context(), s, ping); err != nil {
				return err
			}
			pong <- struct{}{}
		}
		return nil
	})
	one := s.Go(ctx, func(t *sched.Task) error {
		for range n {
			ping <- struct{}{}
			if _, err := sched.Receive(t.Context(), s, pong); err != nil {
				return err
			}
		}
		return nil
	})
	one.Wait(ctx)
	other.Wait(ctx)
}
