package sched

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// spin computes for about 400 µs, whatever else runs.
func spin() uint64 {
	x := uint64(88172645463325252)
	for range 200_000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// mostApart is how far the rounds of equal tasks may be apart where a busy machine
// fires their timers late. Elsewhere it is below 1.3: see BenchmarkEqualTasks.
const mostApart = 2

func TestTasksThatComputeAndWaitShareFairly(t *testing.T) {
	for _, n := range []int{12, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rounds, newcomer := roundsOfEquals(t, n, 200)
			if least, most := slices.Min(rounds), slices.Max(rounds); most > mostApart*least {
				t.Errorf("from %d to %d rounds", least, most)
			}
			if newcomer > 500 { // what two slots do in 100 ms
				t.Errorf("a newcomer had to wait for %d rounds", newcomer)
			}
		})
	}
}

// BenchmarkEqualTasks shows how far apart the rounds of equal tasks are.
func BenchmarkEqualTasks(b *testing.B) {
	for _, n := range []int{12, 40} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rounds, newcomer := roundsOfEquals(b, n, b.N)
			b.ReportMetric(float64(slices.Max(rounds))/float64(slices.Min(rounds)), "most/least")
			b.ReportMetric(float64(newcomer)/5, "newcomer-ms")
		})
	}
}

// roundsOfEquals runs n equal tasks that compute and wait in turn, until they have done some
// rounds each on average, and starts another one in the midst of it. It returns the rounds
// of each, and of all together while the new one waited for its first slot.
func roundsOfEquals(t testing.TB, n, each int) (rounds []int, newcomer int64) {
	s := New(Config{Slots: 2})
	defer s.Close()
	rounds = make([]int, n)
	var total, started atomic.Int64
	var tasks []*Task
	half := make(chan struct{})
	for i := range n {
		tasks = append(tasks, s.Go(t.Context(), func(task *Task) error {
			for spin() != 0 && total.Load() < int64(each*n) {
				rounds[i]++
				if total.Add(1) == int64((each*n+1)/2) {
					close(half)
				}
				if err := s.Sleep(task.Context(), 100*time.Microsecond); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	<-half
	asked := total.Load()
	tasks = append(tasks, s.Go(t.Context(), func(*Task) error { started.Store(total.Load()); return nil }))
	for _, task := range tasks {
		<-task.Done()
	}
	return rounds, started.Load() - asked
}

// TestTasksShareFairlyInVirtualTime is the same with exact times.
func TestTasksShareFairlyInVirtualTime(t *testing.T) {
	for _, n := range []int{12, 40} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Slots: 2, Spare: 2})
			defer s.Close()
			rounds := make([]int, n)
			begin := time.Now()
			var tasks []*Task
			for i := range n {
				tasks = append(tasks, s.Go(t.Context(), func(task *Task) error {
					for time.Since(begin) < 2*time.Second {
						for range 4 {
							<-time.After(100 * time.Microsecond) // computing
							task.Checkpoint()
						}
						rounds[i]++
						if err := s.Sleep(task.Context(), 100*time.Microsecond); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			<-time.After(time.Second)
			asked := time.Now()
			var waited time.Duration
			late := s.Go(t.Context(), func(*Task) error { waited = time.Since(asked); return nil })
			for _, task := range append(tasks, late) {
				<-task.Done()
			}
			if least, most := slices.Min(rounds), slices.Max(rounds); float64(most) > 1.1*float64(least) {
				t.Errorf("%d tasks: from %d to %d rounds", n, least, most)
			}
			if waited > 100*time.Millisecond {
				t.Errorf("%d tasks: a newcomer waited for %v", n, waited)
			}
			t.Logf("%d tasks: %d to %d rounds, newcomer after %v", n, slices.Min(rounds), slices.Max(rounds), waited)
		})
	}
}
