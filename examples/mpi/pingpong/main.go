// Command pingpong repeats the two experiments of Bougé, Danjean, Namyst (2002) with real MPI: how
// soon a program that computes sees a message (Table 1), and what waiting for several messages
// costs a computing task (Table 2).
//
//	CC=mpicc go build -o pingpong ./pingpong
//	mpirun -n 2 --bind-to none ./pingpong
//
// Process 0 sends at random moments, and sleeps between. Process 1 computes and waits, each row in
// a way of its own. Messages bear the time at which they were sent, so both run on one host.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"fairway/examples/mpi/mpi"
)

func main() {
	quick := flag.Bool("quick", false, "few and short runs")
	asJSON := flag.Bool("json", false, "print one JSON object")
	flag.Parse()
	p := full
	if *quick {
		p = short
	}
	if err := run(p, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "pingpong:", err)
		os.Exit(1)
	}
}

// plan says what to measure. Both processes go through it in step.
type plan struct {
	each      time.Duration // a run of Table 1
	computing []int         // Table 1: goroutines or tasks that compute
	waiters   []int         // Table 2
	units     int           // Table 2: work of the task, about half a microsecond each
	rounds    int
}

var (
	full  = plan{500 * time.Millisecond, []int{0, 1, 2, 5, 10}, []int{1, 2, 3, 4, 5, 6, 7, 8}, 500_000, 3}
	short = plan{200 * time.Millisecond, []int{0, 4}, []int{1, 8}, 50_000, 1}
)

func run(p plan, asJSON bool) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	defer mpi.Finalize()
	if mpi.Size() != 2 {
		return errors.New("it takes two processes: mpirun -n 2")
	}
	if mpi.Rank() == 0 {
		ask(p)
		return nil
	}
	result := struct {
		Reactions []reaction `json:"reactions"`
		Waiting   []waiting  `json:"waiting"`
	}{}
	var err error
	if result.Reactions, err = reactions(p); err != nil {
		return err
	}
	if result.Waiting, err = waitingCosts(p); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(result)
	}
	fmt.Printf("%-32s %9s %9s %9s %9s %8s %10s\n",
		"way", "computing", "mean us", "p50 us", "p99 us", "messages", "work ratio")
	for _, r := range result.Reactions {
		fmt.Printf("%-32s %9d %9.1f %9.1f %9.1f %8d %10.2f\n", r.Way, r.Computing, r.Mean, r.P50, r.P99, r.Messages, r.Work)
	}
	fmt.Printf("\n%-32s %9s %9s %9s\n", "way", "waiters", "task ms", "messages")
	for _, w := range result.Waiting {
		fmt.Printf("%-32s %9d %9.1f %9d\n", w.Way, w.Waiters, w.TaskMS, w.Messages)
	}
	return nil
}
