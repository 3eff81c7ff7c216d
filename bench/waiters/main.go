// Command waiters measures what waiting costs a computing task, the experiment of
// Table 2 of Bougé, Danjean, Namyst (2002): a task with a lot of checkpoints runs
// beside goroutines that each wait for messages on a socket of their own, while
// another process sends messages to random ones at random moments. Runs of all
// rows alternate; each is a process of its own.
//
//	go run ./bench/waiters -json
//
// In the rows aggregated all waiters are requests of one kind that detects them
// together (the descriptors of package sched), by blocking; in the rows grouped-polling
// that kind only polls, every millisecond and with one call for all, as the paper's does.
// In the rows separate the kind looks at each descriptor by itself, every millisecond.
// In the rows naive each waiter looks by itself whenever it is its turn, and everything
// takes turns on one processor, as the paper's threads do. task_ms is the median
// time of the task, syscalls_per_event what detection needed.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
)

func main() {
	numbers := flag.String("n", "", "measure only with these `numbers` of waiters, separated by commas")
	var c config
	flag.StringVar(&c.name, "serve", "", "internal: run as the program of a row")
	flag.IntVar(&c.waiters, "waiters", 0, "internal: waiting goroutines")
	flag.IntVar(&c.units, "units", 0, "internal: units of work of the task")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if c.name != "" {
			return nil, serve(c)
		}
		p := full
		if run.Quick {
			p = short
		}
		p.rounds = run.Rounds(p.rounds, p.rounds)
		if err := p.restrict(*numbers); err != nil {
			return nil, err
		}
		rows, err := measureAll(p, func(round int, r row) {
			fmt.Fprintf(os.Stderr, "waiters: round %d of %d, so far:%s\n", round, p.rounds, r)
		})
		return measure.Rows(heading, rows, row.String), err
	})
}

// config is what one measured process does.
type config struct {
	name    string
	waiters int
	units   int
}

// plan says how much to measure.
type plan struct {
	rounds  int
	units   int           // of work, about half a microsecond each
	pause   time.Duration // mean of the exponential pauses between messages
	waiters map[string][]int
}

// rowNames are in the order of the table.
var rowNames = []string{"aggregated", "grouped-polling", "separate", "naive"}

var (
	full = plan{5, 3_000_000, 2 * time.Millisecond, map[string][]int{
		"aggregated":      {1, 2, 3, 4, 5, 6, 7, 8, 100, 1000, 10_000},
		"grouped-polling": {1, 2, 3, 4, 5, 6, 7, 8, 100, 1000, 10_000},
		"separate":        {1, 2, 3, 4, 5, 6, 7, 8, 100, 1000},
		"naive":           {1, 2, 3, 4, 5, 6, 7, 8},
	}}
	short = plan{3, 300_000, 2 * time.Millisecond, map[string][]int{
		"aggregated": {1, 8, 10_000}, "grouped-polling": {1, 8, 10_000}, "separate": {1, 8, 1000}, "naive": {1, 8},
	}}
)

// restrict leaves the numbers of waiters in list, or all if it is empty.
func (p *plan) restrict(list string) error {
	if list == "" {
		return nil
	}
	var wanted []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		wanted = append(wanted, n)
	}
	for name := range p.waiters {
		p.waiters[name] = slices.DeleteFunc(p.waiters[name], func(n int) bool { return !slices.Contains(wanted, n) })
	}
	return nil
}
