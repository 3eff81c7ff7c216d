// Command waiters measures what waiting costs a computing task, the experiment of
// Table 2 of Bougé, Danjean, Namyst (2002): a task with a lot of checkpoints runs
// beside goroutines that each wait for messages on a socket of their own, while
// another process sends messages to random ones at random moments. Runs of all
// rows alternate; each is a process of its own.
//
//	go run ./bench/waiters -json
//
// In the rows aggregated all waiters are requests of one kind that detects them
// together (the descriptors of package sched); in the rows separate the kind
// looks at each descriptor by itself, every millisecond. task_ms is the median
// time of the task, syscalls_per_event what detection needed.
package main

import (
	"flag"
	"fmt"
	"time"

	"fairway/bench/measure"
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	quick := flag.Bool("quick", false, "few and short runs, for development")
	var c config
	flag.StringVar(&c.name, "serve", "", "internal: run as the program of a row")
	flag.IntVar(&c.waiters, "waiters", 0, "internal: waiting goroutines")
	flag.IntVar(&c.units, "units", 0, "internal: units of work of the task")
	flag.Parse()

	if c.name != "" {
		measure.ExitOn(serve(c))
		return
	}
	p := full
	if *quick {
		p = short
	}
	rows, err := measureAll(p)
	measure.ExitOn(err)
	if !*asJSON {
		fmt.Println(heading)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// config is what one measured process does.
type config struct {
	name    string
	waiters int
	units   int
}

// plan says how much to measure.
type plan struct {
	rounds     int
	units      int           // of work, about half a microsecond each
	pause      time.Duration // mean of the exponential pauses between messages
	aggregated []int
	separate   []int
}

var (
	full  = plan{9, 3_000_000, 2 * time.Millisecond, []int{1, 10, 100, 1000, 10_000}, []int{1, 10, 100, 1000}}
	short = plan{3, 1_500_000, 2 * time.Millisecond, []int{1, 10_000}, []int{1, 1000}}
)
