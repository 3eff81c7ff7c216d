// Command fairness measures how evenly package sched shares slots in real time: equal tasks
// compute for 400 µs and wait for 100 µs in turn, and now and then a new task comes. Each
// run has a scheduler of its own. Runs of all rows alternate, so that what changes on the
// machine meanwhile meets all of them.
//
//	go run ./bench/fairness -rounds 20 -json
//
// A row is about all runs with as many tasks. least and most are the rounds of a task in the
// run in which they were farthest apart, ratio is most over least there; newcomer_ms is how
// long a new task waited for its first slot, and newcomer_rounds how many rounds all others
// did meanwhile. On a busy machine the system takes processors from threads that have a slot,
// and the figures tell of that too: others is how many processors other processes had in the
// run in which they had most.
package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/lib/sched"
)

const (
	computing = 400 * time.Microsecond
	waiting   = 100 * time.Microsecond
	// between is the time from one newcomer to the next.
	between = 200 * time.Millisecond
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	each := flag.Duration("time", 10*time.Second, "how long a run takes")
	rounds := flag.Int("rounds", 5, "runs of each row")
	slots := flag.Int("slots", 2, "slots of the scheduler")
	tasks := []int{12, 40}
	flag.Func("n", "measure only with this `number` of tasks", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of tasks", text)
		}
		tasks = []int{n}
		return nil
	})
	flag.Parse()

	rows, err := measureAll(tasks, *slots, *rounds, *each)
	measure.ExitOn(err)
	if !*asJSON {
		fmt.Println(heading)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// row is what equal tasks got in all their runs.
type row struct {
	Tasks          int     `json:"tasks"`
	Slots          int     `json:"slots"`
	Runs           int     `json:"runs"`
	Least          int64   `json:"least"`
	Most           int64   `json:"most"`
	Ratio          float64 `json:"ratio"`
	MedianRatio    float64 `json:"ratio_median"`
	NewcomerMedian float64 `json:"newcomer_ms_median"`
	NewcomerWorst  float64 `json:"newcomer_ms_worst"`
	NewcomerRounds int64   `json:"newcomer_rounds_worst"`
	Others         float64 `json:"others"`
}

const heading = "tasks slots runs  least   most  ratio median  newcomer ms: median  worst rounds  others"

func (r row) String() string {
	return fmt.Sprintf("%5d %5d %4d %6d %6d %6.3f %6.3f %20.3f %6.1f %6d %7.2f",
		r.Tasks, r.Slots, r.Runs, r.Least, r.Most, r.Ratio, r.MedianRatio, r.NewcomerMedian, r.NewcomerWorst,
		r.NewcomerRounds, r.Others)
}

func measureAll(tasks []int, slots, rounds int, each time.Duration) ([]row, error) {
	work := calibrate()
	rows := make([]row, len(tasks))
	ratios, newcomers := make([][]float64, len(tasks)), make([][]float64, len(tasks))
	for range rounds {
		for i, n := range tasks {
			r, err := run(n, slots, each, work)
			if err != nil {
				return nil, err
			}
			ratio := float64(r.most) / float64(max(r.least, 1))
			if ratio > rows[i].Ratio {
				rows[i].Least, rows[i].Most, rows[i].Ratio = r.least, r.most, ratio
			}
			ratios[i] = append(ratios[i], ratio)
			newcomers[i] = append(newcomers[i], r.newcomers...)
			rows[i].NewcomerRounds = max(rows[i].NewcomerRounds, r.newcomerRounds)
			rows[i].Others = max(rows[i].Others, r.others)
		}
	}
	for i := range rows {
		r := &rows[i]
		r.Tasks, r.Slots, r.Runs = tasks[i], slots, rounds
		r.MedianRatio = measure.Median(ratios[i])
		r.NewcomerWorst = slices.Max(newcomers[i])
		r.NewcomerMedian = measure.Median(newcomers[i])
	}
	return rows, nil
}

// result is of one run.
type result struct {
	least, most int64     // rounds of a task
	newcomers   []float64 // ms until each new task had a slot
	others      float64   // processors

	newcomerRounds int64 // of all tasks, at most, until a new one had a slot
}

func run(n, slots int, each time.Duration, work int) (result, error) {
	s := sched.New(sched.Config{Slots: slots})
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rounds := make([]atomic.Int64, n)
	var all atomic.Int64 // rounds
	var over atomic.Bool
	tasks := make([]*sched.Task, n)
	began, busy, own := time.Now(), busyTime(), ownTime()
	for i := range tasks {
		tasks[i] = s.Go(ctx, func(t *sched.Task) error {
			for spin(work) != 0 && !over.Load() {
				rounds[i].Add(1)
				all.Add(1)
				if err := s.Sleep(t.Context(), waiting); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var r result
	for end := time.Now().Add(each); time.Until(end) > between; {
		time.Sleep(between)
		asked, done := time.Now(), all.Load()
		var waited time.Duration
		newcomer := s.Go(ctx, func(*sched.Task) error {
			waited, done = time.Since(asked), all.Load()-done
			return nil
		})
		<-newcomer.Done()
		r.newcomers = append(r.newcomers, waited.Seconds()*1000)
		r.newcomerRounds = max(r.newcomerRounds, done)
	}
	over.Store(true)
	others := busyTime() - busy - (ownTime() - own)
	r.others = max(0, others.Seconds()/time.Since(began).Seconds())
	for i, t := range tasks {
		if err := t.Wait(context.Background()); err != nil {
			return result{}, err
		}
		done := rounds[i].Load()
		if i == 0 || done < r.least {
			r.least = done
		}
		r.most = max(r.most, done)
	}
	return r, nil
}

// busyTime is for how long all processors have worked, 0 where the system does not tell.
func busyTime() time.Duration {
	busy, _ := measure.BusyTime(runtime.NumCPU())
	return busy
}

// ownTime is for how long processors have worked for this process.
func ownTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// spin computes, whatever else runs.
func spin(steps int) uint64 {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// calibrate returns how many steps take as long as a task computes, by the fastest of some
// tries: others were disturbed.
func calibrate() int {
	const steps = 200_000
	fastest := time.Hour
	for range 50 {
		began := time.Now()
		if spin(steps) != 0 {
			fastest = min(fastest, time.Since(began))
		}
	}
	return int(steps * computing / fastest)
}
