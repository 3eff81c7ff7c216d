package sched

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

func yieldProcessor() { runtime.Gosched() }

// TestNoEventIsLost lets arrivals, polls, arming, blocks, cancellations and
// regroupings meet in every order that a seed brings about, with and without
// computing tasks, and checks that every event ends exactly the wait for it.
func TestNoEventIsLost(t *testing.T) {
	for _, strategy := range []Strategy{Adaptive, PollOnly, BlockOnly} {
		for _, concurrent := range []bool{false, true} {
			for _, tell := range []bool{false, true} {
				for _, computing := range []bool{false, true} {
					t.Run(fmt.Sprintf("strategy %d concurrent %v tell %v computing %v", strategy, concurrent, tell, computing),
						func(t *testing.T) {
							random := seeded(t)
							s := newTest(t, Config{Slots: 2, Spare: 2})
							d := newDevice(t, random)
							d.tell = tell
							h := Register(s, d.kind(strategy, concurrent))
							stop := func() {}
							if computing {
								stop = compute(s, 3)
							}
							interleave(t, s, d, h)
							stop()
							if len(d.group) != 0 || members(s, "device") != 0 {
								t.Errorf("%d requests left in the group", len(d.group))
							}
						})
				}
			}
		}
	}
}

const (
	waiters      = 8
	eventsOfEach = 40
)

func interleave(t *testing.T, s *Scheduler, d *device, h *Handle[int, int]) {
	var wg sync.WaitGroup
	ctx := patient(t)
	for w := range waiters {
		wait := func(ctx context.Context) {
			for i := range eventsOfEach {
				if err := once(ctx, d, h, w*eventsOfEach+i); err != nil {
					t.Error(err)
					return
				}
			}
		}
		wg.Go(func() {
			if w%2 == 0 {
				wait(ctx)
				return
			}
			_ = s.Run(ctx, func(t *Task) error { wait(t.Context()); return nil })
		})
	}
	wg.Wait()
}

// once waits for event n, which comes before, while or after the wait begins,
// and cancels the wait now and then. A wait that was cancelled in vain is made
// again.
func once(ctx context.Context, d *device, h *Handle[int, int], n int) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	happen := func() { d.jitter(); d.happen(n) }
	if d.rand(3) == 0 {
		happen()
	} else {
		wg.Go(happen)
	}
	for {
		waitCtx, cancel := context.WithCancel(ctx)
		cancels := d.rand(3) == 0
		if cancels {
			wg.Go(func() { d.jitter(); cancel() })
		}
		got, err := h.Wait(waitCtx, n)
		cancel()
		switch {
		case err == nil && got == n:
			return nil
		case err == nil:
			return fmt.Errorf("event %d ended the wait for %d", got, n)
		case !cancels || !errors.Is(err, context.Canceled):
			return fmt.Errorf("wait for %d: %w", n, err)
		}
	}
}

// compute runs tasks that checkpoint until the function it returns is called.
func compute(s *Scheduler, n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var tasks []*Task
	for range n {
		tasks = append(tasks, s.Go(ctx, func(t *Task) error {
			for ctx.Err() == nil {
				t.Checkpoint()
			}
			return nil
		}))
	}
	return func() {
		cancel()
		for _, t := range tasks {
			<-t.Done()
		}
	}
}
