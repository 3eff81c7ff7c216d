package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatusOneQueryForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		var starts []time.Time
		done := 0
		st := NewStatus(s, StatusConfig[int, int]{
			Name: "batch", Every: 10 * time.Second, Jitter: 0.5,
			Query: func(ctx context.Context, keys []int) (map[int]int, error) {
				starts = append(starts, time.Now())
				if err := s.Sleep(ctx, 3*time.Second); err != nil {
					return nil, err
				}
				done++
				answers := make(map[int]int)
				for _, k := range keys {
					answers[k] = done
				}
				return answers, nil
			},
		})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				a, err := st.Wait(t.Context(), i%50, func(a Answer[int]) bool { return a.Value >= 2 })
				if err != nil || !a.Known || a.Age() < 3*time.Second {
					t.Errorf("request %d: %+v, %v", i, a, err)
				}
			})
		}
		wg.Wait()
		if len(starts) > 3 {
			t.Errorf("%d queries for 100 requests", len(starts))
		}
		for i, at := range starts[1:] {
			if gap := at.Sub(starts[i]); gap < 10*time.Second || gap > 15*time.Second {
				t.Errorf("gap %v between queries", gap)
			}
		}
		before := len(starts)
		if a, err := st.Get(t.Context(), 7, time.Minute); err != nil || a.Value < 2 || len(starts) != before {
			t.Errorf("cached answer: %+v, %v", a, err)
		}
		if a, err := st.Get(t.Context(), 7, time.Second); err != nil || len(starts) != before+1 || a.Age() > 4*time.Second {
			t.Errorf("fresh answer: %+v, %v", a, err)
		}
	})
}

func TestStatusBatchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		var asked [][]int
		st := NewStatus(s, StatusConfig[int, int]{
			Name: "batch", Batch: 4,
			Query: func(_ context.Context, keys []int) (map[int]int, error) {
				asked = append(asked, slices.Clone(keys))
				answers := make(map[int]int)
				for _, k := range keys {
					answers[k] = k
				}
				return answers, nil
			},
		})
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if a, err := st.Get(t.Context(), i, 0); err != nil || a.Value != i {
					t.Errorf("%d: %+v, %v", i, a, err)
				}
			})
		}
		wg.Wait()
		for _, keys := range asked {
			if len(keys) > 4 {
				t.Errorf("asked for %v at once", keys)
			}
		}
	})
}

func TestStatusGivesUpAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		broken := errors.New("down")
		n := 0
		st := NewStatus(s, StatusConfig[string, int]{
			Name: "batch", Failures: 3,
			Query: func(context.Context, []string) (map[string]int, error) {
				n++
				return nil, fmt.Errorf("%d: %w", n, broken)
			},
		})
		if _, err := st.Get(t.Context(), "x", 0); !errors.Is(err, broken) || n != 3 {
			t.Errorf("%d queries, %v", n, err)
		}
	})
}

// A key that is missing in an answer is not answered for with what was said of it before.
func TestStatusForgetsWhatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		answers := map[int]string{1: "running"}
		st := NewStatus(s, StatusConfig[int, string]{
			Name: "batch", Query: func(context.Context, []int) (map[int]string, error) { return answers, nil },
		})
		if a, err := st.Get(t.Context(), 1, time.Hour); err != nil || !a.Known {
			t.Fatalf("%+v, %v", a, err)
		}
		answers = nil
		if a, err := st.Wait(t.Context(), 1, func(a Answer[string]) bool { return !a.Known }); err != nil || a.Known {
			t.Fatalf("%+v, %v", a, err)
		}
		if a, err := st.Get(t.Context(), 1, time.Hour); err != nil || a.Known {
			t.Errorf("still %+v, %v", a, err)
		}
	})
}

// Whoever waits alone need not wait for a query, or a file system, that hangs.
func TestWaitsAloneEndWithTheirContext(t *testing.T) {
	s := newTest(t, Config{})
	asked, answer := make(chan struct{}), make(chan struct{})
	st := NewStatus(s, StatusConfig[int, int]{Name: "batch", Query: func(context.Context, []int) (map[int]int, error) {
		close(asked)
		<-answer
		return nil, nil
	}})
	defer close(answer)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	ended := make(chan error, 1)
	go func() { _, err := st.Get(ctx, 1, 0); ended <- err }()
	if err := within(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWaitForAFileEndsWithItsContextWhereTheFileSystemHangs(t *testing.T) {
	s := newTest(t, Config{})
	looks, look := make(chan struct{}), make(chan struct{})
	defer close(look)
	ctx, cancel := context.WithCancel(t.Context())
	first := true
	ended := make(chan error, 1)
	go func() {
		_, err := s.WaitFile(ctx, FileQuery{Path: t.TempDir() + "/x", Until: func(FileState) bool {
			if first { // by the waiter itself
				first = false
				return false
			}
			close(looks)
			<-look
			return false
		}})
		ended <- err
	}()
	<-looks
	cancel()
	if err := within(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A query that is under way when its only waiter leaves does not call what that has left behind.
func TestNoAnswerIsShownToWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		ctx, leave := context.WithCancel(t.Context())
		answered := make(chan bool)
		st := NewStatus(s, StatusConfig[int, int]{
			Name: "slow",
			Query: func(context.Context, []int) (map[int]int, error) {
				leave()
				synctest.Wait() // for the waiter to have left
				defer close(answered)
				return map[int]int{1: 1}, nil
			},
		})
		left := false
		_, err := st.Wait(ctx, 1, func(Answer[int]) bool {
			if left {
				t.Error("it was shown an answer when it had left")
			}
			return false
		})
		left = true
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		<-answered
	})
}
