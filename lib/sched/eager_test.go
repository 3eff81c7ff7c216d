package sched

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// pollTime is what a poll of a gauge takes, in virtual time.
const pollTime = 10 * time.Microsecond

// gauge is a device that can only be polled.
type gauge struct {
	polls atomic.Int64
	ready atomic.Bool

	instant bool // polls take no time
}

func (g *gauge) kind() Kind[int, int] {
	return Kind[int, int]{Name: "gauge", Poll: func(waiting []*Request[int, int]) {
		if !g.instant {
			<-time.After(pollTime)
		}
		g.polls.Add(1)
		if g.ready.Load() {
			waiting[0].Done(waiting[0].Value, nil)
		}
	}}
}

// found has the event of a wait come after some time. It returns how late it was found, and
// how many polls there were.
func (g *gauge) found(t *testing.T, h *Handle[int, int], after time.Duration) (late time.Duration, polls int) {
	t.Helper()
	before := g.polls.Load()
	g.ready.Store(false)
	time.AfterFunc(after, func() { g.ready.Store(true) })
	start := time.Now()
	if _, err := h.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return time.Since(start) - after, int(g.polls.Load() - before)
}

// onSeveralProcessors skips a test of polling without a pause, which a program with one
// processor does not do.
func onSeveralProcessors(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor")
	}
}

func TestIdleMachinePollsWithoutAPause(t *testing.T) {
	onSeveralProcessors(t)
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{})
		defer s.Close()
		var g gauge
		h := Register(s, g.kind())
		for _, after := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond} {
			late, polls := g.found(t, h, after)
			if late > 2*pollTime || polls < int(after/pollTime)/2 {
				t.Errorf("event after %v: %v late, %d polls", after, late, polls)
			}
		}
		before := g.polls.Load()
		<-time.After(time.Second)
		if more := g.polls.Load() - before; more > 0 {
			t.Errorf("%d polls while nobody waited", more)
		}
	})
}

func TestLongWaitFallsBackToTheInterval(t *testing.T) {
	onSeveralProcessors(t)
	for name, c := range map[string]struct {
		eager, interval time.Duration
		least, most     int // polls in a second
	}{
		"default":               {0, time.Millisecond, 5500, 6100},
		"chosen":                {10 * time.Millisecond, time.Millisecond, 1800, 2100},
		"not wanted":            {-1, time.Millisecond, 900, 1100},
		"default, seldom":       {0, 250 * time.Millisecond, 4, 6},
		"chosen, polled seldom": {10 * time.Millisecond, 250 * time.Millisecond, 900, 1100},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := inVirtualTime(Config{})
			defer s.Close()
			var g gauge
			kind := g.kind()
			kind.Eager, kind.Interval = c.eager, c.interval
			late, polls := g.found(t, Register(s, kind), time.Second)
			if late > c.interval+time.Millisecond || polls < c.least || polls > c.most {
				t.Errorf("%s: %v late, %d polls; want %d to %d", name, late, polls, c.least, c.most)
			}
		})
	}
}

func TestShareOfPollingWithoutAPause(t *testing.T) {
	onSeveralProcessors(t)
	for share, most := range map[float64]int{-1: 100, 0.1: 1800, 0.5: 3800} {
		synctest.Test(t, func(t *testing.T) {
			s := inVirtualTime(Config{IdlePolling: share})
			defer s.Close()
			var g gauge
			kind := g.kind()
			kind.Eager = time.Minute
			if _, polls := g.found(t, Register(s, kind), 50*time.Millisecond); polls > most {
				t.Errorf("share %v: %d polls in 50 ms", share, polls)
			}
			_, polls := g.found(t, Register(s, kind), time.Second)
			if most := int(max(share, 0)*1e5) + 2100; polls > most {
				t.Errorf("share %v: %d polls in a second, more than %d", share, polls, most)
			}
			if least := int(share * 0.9e5); polls < least {
				t.Errorf("share %v: %d polls in a second, less than %d", share, polls, least)
			}
		})
	}
}

func TestNothingIsPolledWithoutAPauseWhileAllSlotsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{Slots: 1})
		defer s.Close()
		stop := computeVirtually(s, 1)
		defer stop()
		synctest.Wait()
		g := gauge{instant: true} // tasks poll too, and must not wait for each other's polls
		h := Register(s, g.kind())
		late, polls := g.found(t, h, 200*time.Millisecond)
		if late > DefaultInterval*9/8+50*time.Microsecond || polls > 205 {
			t.Errorf("%v late, %d polls", late, polls)
		}
	})
}

// A poll that takes long tells of other programs on the processor of an idle slot. Beside a task
// that computes, polls are as rare then as without idle slots; without tasks they are not.
func TestPollingWithoutAPauseLetsTasksHaveTheProcessor(t *testing.T) {
	onSeveralProcessors(t)
	for _, computing := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := inVirtualTime(Config{Slots: 2})
			defer s.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range computing { // without a checkpoint, so that only the waiter and the poller poll
				s.Go(ctx, func(*Task) error { <-ctx.Done(); return nil })
			}
			synctest.Wait()
			var g gauge
			kind := g.kind()
			poll := kind.Poll
			kind.Poll = func(waiting []*Request[int, int]) {
				if poll(waiting); g.polls.Load()%100 == 99 {
					<-time.After(lostAfter)
				}
			}
			kind.Eager = time.Minute
			_, polls := g.found(t, Register(s, kind), time.Second)
			if frequent := polls > 20_000; frequent != (computing == 0) {
				t.Errorf("%d tasks: %d polls in a second", computing, polls)
			}
		})
	}
}

// The one that polls for all leaves with its own event. The others' are found all the same.
func TestWhoPollsWithoutAPauseLeavesNobodyBehind(t *testing.T) {
	s := newTest(t, Config{})
	var over [64]atomic.Bool
	h := Register(s, Kind[int, int]{Name: "many", Interval: time.Hour, Eager: time.Hour,
		Poll: func(waiting []*Request[int, int]) {
			for _, r := range waiting {
				if over[r.Value].Load() {
					r.Done(r.Value, nil)
				}
			}
		}})
	onSeveralProcessors(t)
	for range 20 {
		var waits sync.WaitGroup
		for n := range over {
			over[n].Store(false)
			waits.Go(func() {
				if n%8 == 0 { // some leave for another reason
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					_, _ = h.Wait(ctx, n)
				}
				if _, err := h.Wait(patient(t), n); err != nil {
					t.Errorf("event %d: %v", n, err)
				}
			})
		}
		for n := range over {
			yieldProcessor()
			over[n].Store(true)
		}
		waits.Wait()
		if t.Failed() {
			return
		}
	}
}

// Where time stands still, who polls without a pause gives up instead of keeping it from passing.
func TestPollingWithoutAPauseLetsVirtualTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{})
		defer s.Close()
		end := time.Now().Add(10 * time.Millisecond)
		h := Register(s, Kind[int, int]{Name: "instant", Poll: func(waiting []*Request[int, int]) {
			if !time.Now().Before(end) {
				waiting[0].Done(1, nil)
			}
		}})
		if _, err := h.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAllowanceBoundsTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := allowance{share: rapid.Float64Range(0, 1).Draw(t, "share")}
		var now, polled time.Duration
		polling := false
		var longest time.Duration
		for _, step := range rapid.SliceOf(rapid.Int64Range(1, int64(20*time.Millisecond))).Draw(t, "steps") {
			now += time.Duration(step)
			longest = max(longest, time.Duration(step))
			if polling {
				polled += time.Duration(step)
			}
			polling = a.granted(int64(now), polling)
			if most := time.Duration(a.share*float64(now)) + longest + pollingCredit; polled > most {
				t.Fatalf("%v of %v, more than %v", polled, now, most)
			}
		}
	})
}
