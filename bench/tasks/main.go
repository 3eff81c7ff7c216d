// Command tasks measures what computing in tasks of package sched costs, beside goroutines that do
// the same without a scheduler:
//
//	task      start a task that does nothing and wait for it
//	tasks     the same for 100 at a time
//	receive   a round of ping-pong: two tasks, each waits for the other by Receive
//	block     a call in Block
//
// Wall time and the processor time of the process, in ns for each.
package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/lib/sched"
)

// row is a row of measure with processor times.
type row struct {
	measure.Row
	CPU          float64 `json:"cpu_ns"`
	CPUYardstick float64 `json:"cpu_yardstick_ns"`
}

func (r row) String() string {
	return fmt.Sprintf("%-8s %9.0f ns %9.0f ns   ratio %7.1f   processor time %9.0f ns %9.0f ns",
		r.Name, r.NS, r.Yardstick, r.Ratio, r.CPU, r.CPUYardstick)
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	rounds := flag.Int("rounds", 51, "rounds of each row")
	flag.Parse()
	s := sched.New(sched.Config{})
	defer s.Close()
	var rows []row
	for _, b := range []struct {
		name            string
		each            int
		ours, yardstick func(n int)
	}{
		{"task", 500, func(n int) { oneByOne(s, n) }, goroutines},
		{"tasks", 5_000, func(n int) { together(s, n) }, goroutinesTogether},
		{"receive", 1_000, func(n int) { pingPong(s, n) }, channelPingPong},
		{"block", 1_000, func(n int) { blocks(s, n) }, func(n int) { calls(n, func(f func()) { f() }) }},
	} {
		r, err := alternate(b.name, *rounds, b.each, b.ours, b.yardstick)
		measure.ExitOn(err)
		rows = append(rows, r)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

func alternate(name string, rounds, each int, ours, yardstick func(int)) (r row, err error) {
	var cpu, cpuYardstick []float64
	counted := func(f func(int), into *[]float64) func() (float64, error) {
		loop := measure.Loop(each, f)
		return func() (float64, error) {
			before := processorTime()
			ns, err := loop()
			*into = append(*into, float64(processorTime()-before)/float64(each))
			return ns, err
		}
	}
	r.Row, err = measure.Alternate(name, rounds, counted(ours, &cpu), counted(yardstick, &cpuYardstick))
	r.CPU, r.CPUYardstick = measure.Median(cpu), measure.Median(cpuYardstick)
	return r, err
}

// processorTime is what the process has had of processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails for a wrong address only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func nothing(*sched.Task) error { return nil }

func oneByOne(s *sched.Scheduler, n int) {
	ctx := context.Background()
	for range n {
		_ = s.Go(ctx, nothing).Wait(ctx)
	}
}

func goroutines(n int) {
	for range n {
		done := make(chan struct{})
		go close(done)
		<-done
	}
}

const atATime = 100

func together(s *sched.Scheduler, n int) {
	ctx := context.Background()
	var tasks [atATime]*sched.Task
	for range n / atATime {
		for i := range tasks {
			tasks[i] = s.Go(ctx, nothing)
		}
		for _, t := range tasks {
			_ = t.Wait(ctx)
		}
	}
}

func goroutinesTogether(n int) {
	for range n / atATime {
		var all sync.WaitGroup
		for range atATime {
			all.Go(func() {})
		}
		all.Wait()
	}
}

// play receives and answers n times.
func play(n int, out chan<- struct{}, receive func() error) error {
	for range n {
		if err := receive(); err != nil {
			return err
		}
		out <- struct{}{}
	}
	return nil
}

func pingPong(s *sched.Scheduler, n int) {
	ctx := context.Background()
	ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
	player := func(out chan<- struct{}, in <-chan struct{}) *sched.Task {
		return s.Go(ctx, func(t *sched.Task) error {
			return play(n, out, func() error { _, err := sched.Receive(t.Context(), s, in); return err })
		})
	}
	ping <- struct{}{}
	one, other := player(pong, ping), player(ping, pong)
	_, _ = one.Wait(ctx), other.Wait(ctx)
}

func channelPingPong(n int) {
	ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
	ping <- struct{}{}
	var both sync.WaitGroup
	both.Go(func() { _ = play(n, pong, func() error { <-ping; return nil }) })
	both.Go(func() { _ = play(n, ping, func() error { <-pong; return nil }) })
	both.Wait()
}

func calls(n int, call func(func())) {
	for range n {
		call(func() {})
	}
}

func blocks(s *sched.Scheduler, n int) {
	_ = s.Run(context.Background(), func(t *sched.Task) error {
		calls(n, t.Block)
		return nil
	})
}
