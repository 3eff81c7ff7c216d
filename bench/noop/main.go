// Noop measures what Fairway costs per job: jobs of true on two slots, durable
// and through pilots, against a bare Go loop that runs the same program in the
// same way on two slots. Rounds of the two alternate, and medians count.
//
//	go run ./bench/noop -json
//	go run ./bench/noop -json -peers     # also what other systems need for it
//
// Both loops execute one small static program, built by this one, that does
// what true does and, before it ends, appends one byte to a file (O_APPEND, so
// that no byte is lost): a counter of executions outside Fairway. It costs both
// loops the same. Afterwards the store is opened again and its commits counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/bench/measure"
	"fairway/bench/measure/agent"
)

// slots is how many jobs run at a time, in all systems that are compared.
const slots = 2

// row is one line of the result.
type row struct {
	Name       string  `json:"name"`
	JobsPerSec float64 `json:"jobs_per_s"`
	// CPU is what all processes of a job took together, in microseconds. Unlike
	// the rate it hardly depends on what else the machine does.
	CPU  float64 `json:"cpu_us_per_job,omitempty"`
	Note string  `json:"note,omitempty"`
}

// report is what -json prints.
type report struct {
	Rows       []row           `json:"rows"`
	Ratio      float64         `json:"ratio"` // fairway over bare
	Jobs       int             `json:"jobs"`
	Rounds     int             `json:"rounds"`
	Commits    int             `json:"commits"`    // of one round, as found in the store afterwards
	Executions int             `json:"executions"` // of one round, as counted outside
	Machine    measure.Machine `json:"machine"`
}

func main() {
	agent.RunIfPilot()
	jobs := flag.Int("jobs", 5000, "jobs of each round")
	withPeers := flag.Bool("peers", false, "measure other systems too, where they are installed")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if run.Quick {
			*jobs = 50
		}
		end, err := measure.StartProfile(run.Profile)
		if err != nil {
			return nil, err
		}
		defer end()
		r, err := measureAll(context.Background(), *jobs, run.Rounds(5, 1), *withPeers)
		return measure.Object(r), err
	})
}

func measureAll(ctx context.Context, jobs, rounds int, withPeers bool) (*report, error) {
	scratch, err := os.MkdirTemp("", "noop")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	program, err := buildCounted(ctx, scratch)
	if err != nil {
		return nil, err
	}
	r := &report{Jobs: jobs, Rounds: rounds, Machine: measure.ThisMachine()}
	var fairway, bare series
	for range rounds {
		if err := bare.measure(jobs, func() (float64, error) { return runBare(program, jobs) }); err != nil {
			return nil, fmt.Errorf("bare loop: %w", err)
		}
		if err := fairway.measure(
			jobs, func() (float64, error) { return r.runFairway(ctx, scratch, program, jobs) },
		); err != nil {
			return nil, fmt.Errorf("fairway: %w", err)
		}
	}
	r.Rows = []row{fairway.row("fairway"), bare.row("bare")}
	r.Ratio = measure.Median(fairway.rates) / measure.Median(bare.rates)
	if withPeers {
		r.Rows = append(r.Rows, measurePeers(ctx, scratch, program.path, jobs)...)
	}
	return r, nil
}

// series are the rounds of one loop.
type series struct{ rates, cpu []float64 }

func (s *series) measure(jobs int, run func() (float64, error)) error {
	before := cpuTime()
	rate, err := run()
	s.rates = append(s.rates, rate)
	s.cpu = append(s.cpu, float64((cpuTime()-before).Microseconds())/float64(jobs))
	return err
}

func (s *series) row(name string) row {
	return row{Name: name, JobsPerSec: measure.Median(s.rates), CPU: measure.Median(s.cpu)}
}

// cpuTime is what this process and those that it waited for took.
func cpuTime() time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if unix.Getrusage(who, &usage) == nil {
			total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return total
}

// String is the report for a person.
func (r *report) String() string {
	var text strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "%-20s %8.0f jobs/s %8.0f us of CPU per job %s\n", row.Name, row.JobsPerSec, row.CPU, row.Note)
	}
	fmt.Fprintf(&text, "ratio %.2f; %d commits, %d executions of %d jobs\n", r.Ratio, r.Commits, r.Executions, r.Jobs)
	return text.String()
}
