package sched

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPanicEndsWaitsOfItsKindOnly(t *testing.T) {
	boom := errors.New("boom")
	fail := func() { panic(boom) }
	never := make(chan struct{})
	kinds := map[string]Kind[int, int]{
		"Poll":      {Poll: func([]*Request[int, int]) { fail() }},
		"Group":     {Group: func(*Request[int, int], bool) { fail() }},
		"Block":     {Block: func(time.Duration) { fail() }, Unblock: func() {}},
		"BlockEach": {BlockEach: func(context.Context, int) (int, error) { fail(); return 0, nil }},
		"Arm": {
			Poll: func([]*Request[int, int]) {}, Arm: func() bool { fail(); return true },
			Block: func(time.Duration) { <-never }, Unblock: func() {},
		},
	}
	for callback, k := range kinds {
		t.Run(callback, func(t *testing.T) {
			s := newTest(t, Config{})
			k.Name = "broken"
			h := Register(s, k)
			for range 2 {
				var p *PanicError
				if _, err := h.Wait(patient(t), 1); !errors.As(err, &p) || p.Callback != callback || !errors.Is(err, boom) {
					t.Fatalf("got %v", err)
				}
			}
			other := Register(s, Kind[int, int]{
				Name: "whole", Poll: func(waiting []*Request[int, int]) { waiting[0].Done(1, nil) },
			})
			if v, err := other.Wait(patient(t), 1); v != 1 || err != nil {
				t.Fatalf("other kind: %v, %v", v, err)
			}
		})
	}
}

func TestRegisterRefusesCallbacksThatDontFit(t *testing.T) {
	for name, k := range map[string]Kind[int, int]{
		"block without unblock": {Block: func(time.Duration) {}},
		"arm without block":     {Arm: func() bool { return true }, Poll: func([]*Request[int, int]) {}},
		"two ways to block": {
			Block: func(time.Duration) {}, Unblock: func() {},
			BlockEach: func(context.Context, int) (int, error) { return 0, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTest(t, Config{})
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			Register(s, k)
		})
	}
}

func TestCloseEndsWaits(t *testing.T) {
	s := New(Config{})
	h := Register(s, Kind[int, int]{Name: "never"})
	errs := make(chan error, 2)
	go func() { _, err := h.Wait(context.Background(), 1); errs <- err }()
	go func() { errs <- s.Sleep(context.Background(), time.Hour) }()
	until(t, s, "waiting", func() bool { return members(s, "never") == 1 })
	s.Close()
	for range 2 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := h.Wait(context.Background(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if err := s.Run(context.Background(), func(*Task) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("task after close: %v", err)
	}
	s.Close()
}

func TestDoneFromAnywhereCountsOnce(t *testing.T) {
	s := newTest(t, Config{})
	requests := make(chan *Request[int, int], 1)
	h := Register(s, Kind[int, int]{Name: "callback", Group: func(r *Request[int, int], joined bool) {
		if joined {
			requests <- r
		}
	}})
	go func() {
		r := <-requests
		if !r.Done(2*r.Value, nil) || r.Done(0, errors.New("again")) {
			t.Error("Done does not count once")
		}
	}()
	if v, err := h.Wait(patient(t), 21); v != 42 || err != nil {
		t.Fatalf("%v, %v", v, err)
	}
}

func TestBlockEachIsBoundedByThePool(t *testing.T) {
	s := newTest(t, Config{Threads: 2})
	var mu sync.Mutex
	inside, most := 0, 0
	h := Register(s, Kind[int, int]{Name: "each", BlockEach: func(_ context.Context, n int) (int, error) {
		mu.Lock()
		inside++
		most = max(most, inside)
		mu.Unlock()
		for range 100 {
			yieldProcessor()
		}
		mu.Lock()
		inside--
		mu.Unlock()
		return n, nil
	}})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if v, err := h.Wait(patient(t), i); v != i || err != nil {
				t.Errorf("%d: %v, %v", i, v, err)
			}
		})
	}
	wg.Wait()
	if most > 2 {
		t.Errorf("%d threads of 2", most)
	}
}

func TestKindsOfHigherPriorityArePolledFirst(t *testing.T) {
	s := newTest(t, Config{})
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	go1 := make(chan struct{})
	for _, p := range []int{1, 3, 2} {
		first := true
		h := Register(s,
			Kind[int, int]{Name: "ordered", Priority: p, Interval: time.Millisecond, Poll: func(waiting []*Request[int, int]) {
				if first { // the poll of the request's own goroutine
					first = false
					return
				}
				mu.Lock()
				defer mu.Unlock()
				select {
				case <-go1:
					order = append(order, p)
					waiting[0].Done(p, nil)
				default:
				}
			}})
		wg.Go(func() { _, _ = h.Wait(patient(t), p) })
	}
	until(t, s, "all wait", func() bool { return members(s, "ordered") == 3 })
	s.poller.mu.Lock()
	for i, src := range s.poller.watched[:len(s.poller.watched)-1] {
		if src.priority < s.poller.watched[i+1].priority {
			t.Errorf("priority %d before %d", src.priority, s.poller.watched[i+1].priority)
		}
	}
	s.poller.mu.Unlock()
	close(go1)
	wg.Wait()
}

func TestIntervalIsNeverMoreThanReaction(t *testing.T) {
	s := newTest(t, Config{})
	polls := 0
	h := Register(s, Kind[int, int]{
		Name: "hurried", Interval: time.Hour, Reaction: time.Millisecond,
		Poll: func(waiting []*Request[int, int]) {
			if polls++; polls > 3 {
				waiting[0].Done(1, nil)
			}
		},
	})
	if _, err := h.Wait(patient(t), 1); err != nil {
		t.Fatal(err)
	}
}

func TestAbandonedWaitEndsAtOnce(t *testing.T) {
	s := newTest(t, Config{})
	h := Register(s, Kind[int, int]{Name: "never"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// A kind without a name is read as one in errors, and in those of a Status.
func TestKindsWithoutNames(t *testing.T) {
	s := newTest(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kind := Register(s, Kind[int, int]{})
	status := NewStatus(s, StatusConfig[int, int]{
		Query: func(context.Context, []int) (map[int]int, error) { return nil, nil },
	})
	_, ofKind := kind.Wait(ctx, 1)
	_, ofStatus := status.Get(ctx, 1, 0)
	for _, err := range []error{ofKind, ofStatus} {
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for unnamed: ") {
			t.Errorf("got %v", err)
		}
	}
}
