package orwl

import (
	"context"
	"errors"
	"testing"

	"fairway/lib/sched"
)

// Tasks that wait for a lock give their slot back: with one slot the others
// could not come to their turn otherwise.
func TestWaitingTaskGivesItsSlotBack(t *testing.T) {
	s := sched.New(sched.Config{Slots: 1})
	defer s.Close()
	l := newLocation(t, "l", 8)
	pairs := make([]Pair, 4)
	tasks := make([]*sched.Task, len(pairs))
	for i := range pairs {
		must(t, pairs[i].WriteRequest(l))
	}
	for i := len(pairs) - 1; i >= 0; i-- {
		p := &pairs[i]
		tasks[i] = s.Go(background, func(task *sched.Task) error {
			for range 50 {
				if err := p.Acquire(task.Context()); err != nil {
					return err
				}
				if err := p.Release(); err != nil {
					return err
				}
			}
			return p.Cancel()
		})
	}
	for _, task := range tasks {
		must(t, task.Wait(background))
	}
}

func TestTaskWaitEndsWithItsContext(t *testing.T) {
	s := sched.New(sched.Config{Slots: 1})
	defer s.Close()
	l := newLocation(t, "l", 8)
	var holder, h Handle
	must(t, holder.WriteRequest(l))
	must(t, h.WriteRequest(l))
	ctx, cancel := context.WithCancel(background)
	waiting := s.Go(ctx, func(task *sched.Task) error { return h.Acquire(task.Context()) })
	cancel()
	if err := waiting.Wait(background); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if l.Waiting() > 2 {
		t.Fatal("the request was not withdrawn")
	}
}
