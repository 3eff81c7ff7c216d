// Command pilot measures how soon a pilot reports the end of a job: on a machine
// that is idle otherwise, and on one that the pilot's own jobs saturate, with one
// that computes without end for each processor.
//
//	go run ./bench/pilot -json
//
// The pilot is a real one in a process of its own; this process is its
// TaskQueue, which does nothing but to hand out jobs and to stamp reports. The
// time counts from the last act of a job, which is to read the clock, until the
// TaskQueue has the report: so it has the end of the process in it, the pilot's
// waking up, what it does after each job, and the way to the TaskQueue. Rounds of
// both rows alternate. Needs a C compiler, for a job that ends as fast as a
// process can.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"fairway/bench/measure"
	"fairway/bench/measure/agent"
)

// row is one line of the result.
type row struct {
	Name    string  `json:"name"`
	Mean    float64 `json:"mean_us"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Max     float64 `json:"max_us"`
	Samples int     `json:"samples"`
}

// report is what -json prints.
type report struct {
	Rows    []row           `json:"rows"`
	Ratio   float64         `json:"p99_ratio"` // saturated over idle
	Machine measure.Machine `json:"machine"`
}

func main() {
	agent.RunIfPilot()
	asJSON := flag.Bool("json", false, "print one JSON object")
	rounds := flag.Int("rounds", 5, "rounds of each row")
	each := flag.Duration("each", 12*time.Second, "time of one round")
	flag.Parse()
	r, err := measureAll(context.Background(), *rounds, *each)
	measure.ExitOn(err)
	r.print(*asJSON)
}

func (r *report) print(asJSON bool) {
	if asJSON {
		measure.ExitOn(measure.PrintJSON(r))
		return
	}
	for _, w := range r.Rows {
		fmt.Printf("%-10s mean %6.0f us, p50 %6.0f, p99 %6.0f, max %6.0f (%d jobs)\n", w.Name, w.Mean, w.P50, w.P99,
			w.Max, w.Samples)
	}
	fmt.Printf("p99, saturated over idle: %.2f\n", r.Ratio)
}
