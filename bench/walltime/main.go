// Command walltime measures what a job loses that takes ten times as long as any pilot lasts: 40
// hours of work in pilots of 4 hours, by scale.
//
//	go run ./bench/walltime -json
//	go run ./bench/walltime -work 5m -life 30s
//
// `fairway run` has a batch system start real pilots, one at a time. The batch system is processes
// of this machine, which it kills when their time is over, as others do. The job is a real program
// that computes and saves its state (compute.go). In the row `told` it saves when it gets SIGTERM;
// in the row `interval` it knows of no signals, and saves now and then. Its result has the bits of
// a run without an end, or the benchmark fails.
//
// Lost is the share of the pilots' time in which nothing was computed that counts: steps that were
// computed twice, and what pilots need to start, to stage, to save and to end. That does not grow
// with the life of a pilot, so the share in pilots of 4 hours is calculated too: of steps computed
// twice the same share, the time of each pilot beside its steps, and all that a pilot leaves for
// saving, though it ends as soon as that is done.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"fairway/bench/measure"
)

// scale is how many lives of a pilot the work takes.
const scale = 10

// goal is what may be lost at most.
const goal = 0.03

// long is the life of a pilot of which the figure tells.
const long = 4 * time.Hour

// row is one line of the result.
type row struct {
	Name     string  `json:"name"`
	Work     float64 `json:"work_s"`     // that was needed
	Twice    float64 `json:"twice_s"`    // that was done again, since it had not been saved
	Pilots   float64 `json:"pilots_s"`   // the time of all pilots
	Count    int     `json:"pilots"`     // how many there were
	Lost     float64 `json:"lost_ratio"` // of the time of the pilots
	TwicePer float64 `json:"twice_ratio"`
	Beside   float64 `json:"beside_s"`            // of each pilot, beside its steps
	AtLong   float64 `json:"lost_ratio_at_4h"`    // calculated: see main.go
	Goal     float64 `json:"goal"`                // of both ratios
	Elapsed  float64 `json:"elapsed_s"`           // of the run, with the queue of the batch system
	Life     float64 `json:"life_of_pilots_s"`    // as the batch system limits it
	Every    float64 `json:"saves_each_s"`        // 0: when it is told
	SameBits bool    `json:"bits_of_one_attempt"` // always true: the benchmark fails otherwise
}

func (r row) String() string {
	return fmt.Sprintf("%-8s %6.1f s of work in %d pilots of %.0f s: %.1f s done twice (%.2f %%), "+
		"lost %.2f %% of their time; in pilots of 4 h %.2f %% (at most %.0f %%)", r.Name, r.Work, r.Count, r.Life,
		r.Twice, 100*r.TwicePer, 100*r.Lost, 100*r.AtLong, 100*r.Goal)
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	work := flag.Duration("work", 5*time.Minute, "how long the job computes")
	life := flag.Duration("life", 0, "how long a pilot may live; 0: a tenth of the work")
	every := flag.Duration("every", 0, "how often the program of the row interval saves; 0: as a minute in 4 hours")
	only := flag.String("only", "", "measure this row alone")
	var c computing
	flag.Int64Var(&c.steps, "compute", 0, "internal: be the program of the job, of so many steps")
	flag.DurationVar(&c.every, "save", 0, "internal: how often it saves")
	flag.StringVar(&c.log, "log", "", "internal: the folder in which it tells what it has computed")
	flag.Parse()
	if c.steps > 0 {
		measure.ExitOn(c.run(os.Getenv("FAIRWAY_CHECKPOINT"), flag.Arg(0)))
		return
	}
	if *life == 0 {
		*life = *work / scale
	}
	if *every == 0 {
		*every = *life / time.Duration(long/time.Minute)
	}
	b, err := newBench(*work, *life)
	measure.ExitOn(err)
	defer b.close()
	var rows []row
	for _, w := range []struct {
		name  string
		every time.Duration
	}{{"told", 0}, {"interval", *every}} {
		if *only != "" && *only != w.name {
			continue
		}
		r, err := b.measure(context.Background(), w.name, w.every)
		if err != nil {
			b.close()
			measure.ExitOn(fmt.Errorf("%s: %w", w.name, err))
		}
		rows = append(rows, r)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}
