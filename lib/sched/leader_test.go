package sched

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A kind that nobody waits at any more keeps no thread of the pool from others, also where the last one has given
// up while another goroutine blocked for it.
func TestAKindThatNobodyWaitsAtKeepsNoThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1, Threads: 1})
		defer s.Close()
		nudge := make(chan struct{}, 1)
		quiet := Register(s, Kind[int, int]{
			Name: "quiet", Concurrent: true,
			Block: func(limit time.Duration) {
				var over <-chan time.Time
				if limit > 0 {
					over = time.After(limit)
				}
				select {
				case <-nudge:
				case <-over:
				}
			},
			Unblock: func() {
				select {
				case nudge <- struct{}{}:
				default:
				}
			},
		})
		var give [2]context.CancelFunc
		gone := make(chan error, len(give))
		for i := range give {
			var ctx context.Context
			ctx, give[i] = context.WithCancel(t.Context())
			go func() {
				_, err := quiet.Wait(ctx, i)
				gone <- err
			}()
			synctest.Wait()
		}
		for i := range give { // who leads goes first
			give[i]()
			if err := <-gone; err == nil {
				t.Error("somebody was told of an event")
			}
			synctest.Wait()
		}
		var waits *Request[int, int]
		other := Register(s, Kind[int, int]{
			Name:    "other",
			Group:   func(r *Request[int, int], joined bool) { waits = r },
			Block:   func(time.Duration) { waits.Done(7, nil) },
			Unblock: func() {},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got, err := other.Wait(ctx, 0); got != 7 || err != nil {
			t.Errorf("another kind gets %v, %v", got, err)
		}
	})
}
