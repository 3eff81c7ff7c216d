package sched

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
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

// mostApart is how far the rounds of equal tasks may be apart. Where other processes take
// processors, which hits tasks unequally for as long as they do, it is mostDisturbed: without
// shares the last tasks have no round at all.
const (
	mostApart     = 1.3
	mostDisturbed = 5
)

func TestTasksThatComputeAndWaitShareFairly(t *testing.T) {
	for _, n := range []int{12, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			m := measureEquals(t, n, 200, 5)
			if m.apart > mostApart && (m.others <= pollution || m.apart > mostDisturbed) {
				t.Errorf("from %d to %d rounds; other processes had %.2f processors meanwhile", m.least, m.most, m.others)
			}
			if m.newcomer > 500 { // what two slots do in 100 ms
				t.Errorf("a newcomer had to wait for %d rounds", m.newcomer)
			}
			t.Logf("from %d to %d rounds; other processes had %.2f processors meanwhile", m.least, m.most, m.others)
		})
	}
}

// BenchmarkEqualTasks shows how far apart the rounds of equal tasks are.
func BenchmarkEqualTasks(b *testing.B) {
	for _, n := range []int{12, 40} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := measureEquals(b, n, b.N, 1)
			b.ReportMetric(m.apart, "most/least")
			b.ReportMetric(float64(m.newcomer)/5, "newcomer-ms")
		})
	}
}

// equalRounds is what equal tasks got.
type equalRounds struct {
	least, most int64 // rounds of a task
	apart       float64
	newcomer    int64   // rounds of all while a new task waited for its first slot
	others      float64 // processors that other processes had
}

// measureEquals runs n equal tasks that compute and wait in turn, until they have done some
// rounds each on average, and starts another one in the midst of it.
//
// The system may take the processor from a thread whose task has a slot: that task stands
// still meanwhile, and the others go on. This hits all tasks alike in the long run, but not
// within so few rounds. So where the rounds are too far apart, and other processes have
// provably had processors meanwhile, the same tasks go on for as many rounds again, up to
// spans times in all. What the scheduler keeps from a task stays apart however long that is.
func measureEquals(t testing.TB, n, each, spans int) equalRounds {
	s := New(Config{Slots: 2})
	defer s.Close()
	rounds := make([]atomic.Int64, n)
	var total, target, started atomic.Int64
	var ended atomic.Bool
	var m equalRounds
	measure := func() {
		m.least, m.most = rounds[0].Load(), rounds[0].Load()
		for i := range rounds {
			m.least, m.most = min(m.least, rounds[i].Load()), max(m.most, rounds[i].Load())
		}
		m.apart = float64(m.most) / float64(max(m.least, 1))
	}
	target.Store(int64(each * n))
	othersSince := othersProcessors()
	var tasks []*Task
	half := make(chan struct{})
	for i := range n {
		tasks = append(tasks, s.Go(t.Context(), func(task *Task) error {
			for spin() != 0 && !ended.Load() {
				rounds[i].Add(1)
				now := total.Add(1)
				if now == int64((each*n+1)/2) {
					close(half)
				}
				if now == target.Load() {
					spans--
					measure()
					m.others = othersSince()
					if m.apart > mostApart && m.others > pollution && spans > 0 {
						target.Store(now + int64(each*n))
					} else {
						ended.Store(true)
					}
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
	m.newcomer = started.Load() - asked
	return m
}

// pollution is how many processors other processes may have for a measurement to count as
// undisturbed.
const pollution = 0.05

// othersProcessors returns how many processors all other processes, and other machines on
// the same hardware, have had on average since it was called; 0 where the system does not
// say so.
func othersProcessors() func() float64 {
	begin, all, own := time.Now(), busyTime(), ownTime()
	return func() float64 {
		others := busyTime() - all - (ownTime() - own)
		return max(0, others.Seconds()/time.Since(begin).Seconds())
	}
}

// jiffy is the unit of /proc/stat on all architectures of Linux.
const jiffy = 10 * time.Millisecond

// busyTime is for how long all processors have worked since the start of the machine.
func busyTime() (busy time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		const idle, waiting, guest = 4, 5, 9 // guests are in user time already
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != idle && i != waiting && i < guest {
			busy += time.Duration(n) * jiffy
		}
	}
	return busy
}

// ownTime is for how long processors have worked for this process.
func ownTime() time.Duration {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var own time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, _ := strconv.ParseInt(field, 10, 64)
		own += time.Duration(n) * jiffy
	}
	return own
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
