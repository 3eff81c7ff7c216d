package sched

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A callback that has taken something when the wait is to end gives it to the waiter.
func TestBlockEachLosesNothingWhenTheWaitEnds(t *testing.T) {
	for name, end := range map[string]func(s *Scheduler, cancel func()){
		"context": func(_ *Scheduler, cancel func()) { cancel() },
		"close":   func(s *Scheduler, _ func()) { go s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{})
				defer s.Close()
				var inside atomic.Bool
				taken := make(chan struct{})
				h := Register(s,
					Kind[*atomic.Bool, int]{Name: "each", BlockEach: func(ctx context.Context, used *atomic.Bool) (int, error) {
						inside.Store(true)
						defer inside.Store(false)
						close(taken)
						<-ctx.Done()
						<-time.After(time.Millisecond)
						used.Store(true)
						return 42, nil
					}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { <-taken; end(s, cancel) }()
				v, err := h.Wait(ctx, new(atomic.Bool))
				if v != 42 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
				if inside.Load() {
					t.Error("the callback still has the request")
				}
			})
		})
	}
}

// What a wait that was cut short says wraps why, and what else the callback said.
func TestBlockEachThatIsCutShortSaysWhy(t *testing.T) {
	broken := errors.New("broken")
	for _, said := range []error{nil, broken} {
		s := newTest(t, Config{})
		begun := make(chan struct{})
		h := Register(s, Kind[int, int]{Name: "each", BlockEach: func(ctx context.Context, _ int) (int, error) {
			close(begun)
			<-ctx.Done()
			if said != nil {
				return 0, said
			}
			return 0, ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if _, err := h.Wait(ctx, 1); !errors.Is(err, context.Canceled) || said != nil && !errors.Is(err, said) {
			t.Errorf("got %v", err)
		}
		if c := h.Counts(); c.Aborted != 1 || c.Events != 0 {
			t.Errorf("counted %+v", c)
		}
	}
}

func TestKindThatIsClosedEndsItsBlockEach(t *testing.T) {
	s := newTest(t, Config{})
	begun := make(chan struct{})
	h := Register(s, Kind[int, int]{Name: "each", BlockEach: func(ctx context.Context, _ int) (int, error) {
		close(begun)
		<-ctx.Done()
		return 0, ctx.Err()
	}})
	go func() { <-begun; h.Close() }()
	if _, err := h.Wait(patient(t), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A request that is answered by somebody else is not left in the hands of its callback either.
func TestBlockEachIsOverWhenDoneEndsTheWait(t *testing.T) {
	s := newTest(t, Config{})
	requests, begun := make(chan *Request[int, int], 1), make(chan struct{})
	var inside atomic.Bool
	h := Register(s, Kind[int, int]{
		Name: "each",
		Group: func(r *Request[int, int], joined bool) {
			if joined {
				requests <- r
			}
		},
		BlockEach: func(ctx context.Context, _ int) (int, error) {
			inside.Store(true)
			defer inside.Store(false)
			close(begun)
			<-ctx.Done()
			return 0, ctx.Err()
		},
	})
	go func() { <-begun; (<-requests).Done(7, nil) }()
	if v, err := h.Wait(patient(t), 1); v != 7 || err != nil || inside.Load() {
		t.Errorf("%d, %v, the callback runs: %v", v, err, inside.Load())
	}
}

func TestBlockEachThatEndsItsGoroutineEndsTheWait(t *testing.T) {
	s := newTest(t, Config{Threads: 1})
	h := Register(s, Kind[int, int]{Name: "each", BlockEach: func(context.Context, int) (int, error) {
		runtime.Goexit()
		return 0, nil
	}})
	for range 2 {
		if _, err := h.Wait(patient(t), 1); !errors.Is(err, ErrExited) {
			t.Errorf("got %v", err)
		}
	}
}
