// Command clients measures what people's own tools reach with Fairway behind them, in tasks that do
// nothing a second, on two slots:
//
//   - python: a function by fairway.Executor, concurrent.futures.ProcessPoolExecutor, Dask, Parsl's
//     HighThroughputExecutor and Ray, and by joblib with Fairway and with loky, also as the fits of a
//     GridSearchCV;
//   - snakemake: a Snakefile with the plugin for Fairway, its local executor and cluster-generic;
//   - nextflow: a process with its executor for HyperQueue, which finds Fairway under the name hq,
//     and with its local executor.
//
// Run it as
//
//	go run ./bench/clients -json
//	go run ./bench/clients -only snakemake -jobs 100
//
// Each measurement is said on standard error at once. The rows of a kind take turns, and their medians
// count. A row takes part in no further round once it has used -limit in all; one that does not end
// within it says so in its note. Ctrl-C prints the rows that there are.
//
// It installs the tools from PyPI into bin/clients, and Nextflow by scripts/install-nextflow.sh. One
// that cannot be had has a row that says why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"fairway/bench/measure"
)

// slots is how many tasks run at a time.
const slots = 2

// row is the median of some rounds.
type row struct {
	Name        string  `json:"name"`
	TasksPerSec float64 `json:"tasks_per_s"` // 0: see the note
	Tasks       int     `json:"tasks"`       // of a round
	Rounds      int     `json:"rounds"`
	Note        string  `json:"note,omitempty"`
}

func (r row) String() string {
	return strings.TrimRight(fmt.Sprintf("%-28s %8.1f tasks/s  %5d tasks, %d rounds  %s", r.Name, r.TasksPerSec, r.Tasks,
		r.Rounds, r.Note), " ")
}

// subject is one way to have tasks run.
type subject struct {
	name  string
	tasks int
	// run returns tasks a second. If the context ends before the tasks do it returns an error, with the
	// rate so far if that is known.
	run func(ctx context.Context, tasks int) (float64, error)

	rates []float64
	used  time.Duration
	note  string
}

// plan says how much to measure.
type plan struct {
	rounds int
	limit  time.Duration // of all rounds of a row
	only   string        // beginning of the names of the rows that are wanted
}

func main() {
	var p plan
	flag.DurationVar(&p.limit, "limit", 3*time.Minute, "how long the rounds of a row may take in all")
	calls := flag.Int("calls", 1000, "calls of a Python function")
	jobs := flag.Int("jobs", 1000, "jobs of the Snakefile; a tenth of it for those that start Snakemake for each")
	tasks := flag.Int("tasks", 1000, "tasks of Nextflow")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		p.rounds, p.only = run.Rounds(3, 1), run.Only
		if run.Quick {
			*calls, *jobs, *tasks = 20, 10, 10
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		b, err := newBench(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(b.folder) }()
		var rows []row
		for _, kind := range [][]*subject{b.functions(*calls), b.snakefiles(*jobs), b.nextflows(*tasks)} {
			rows = append(rows, p.measure(ctx, kind)...)
		}
		return measure.Rows("", rows, row.String), nil
	})
}

// measure gives each subject its turns, and returns a row for each.
func (p plan) measure(ctx context.Context, kind []*subject) (rows []row) {
	for round := range p.rounds {
		for _, s := range kind {
			mean := s.used / time.Duration(max(1, len(s.rates)))
			if ctx.Err() == nil && strings.HasPrefix(s.name, p.only) && s.note == "" && s.used+mean <= p.limit {
				p.turn(ctx, s, round)
			}
		}
	}
	for _, s := range kind {
		r := row{Name: s.name, Tasks: s.tasks, Rounds: len(s.rates), Note: s.note}
		if len(s.rates) > 0 {
			r.TasksPerSec = measure.Median(s.rates)
		}
		if r.Rounds > 0 || r.Note != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// turn measures a subject once.
func (p plan) turn(ctx context.Context, s *subject, round int) {
	limited, cancel := context.WithTimeout(ctx, p.limit-s.used)
	defer cancel()
	began := time.Now()
	rate, err := s.run(limited, s.tasks)
	took := time.Since(began)
	s.used += took
	switch {
	case err == nil:
		s.rates = append(s.rates, rate)
		fmt.Fprintf(os.Stderr, "%-28s round %d: %8.1f tasks/s, %v in all\n", s.name, round+1, rate,
			took.Round(time.Millisecond))
		return
	case ctx.Err() != nil: // Ctrl-C
		return
	case len(s.rates) > 0 && limited.Err() != nil:
		s.used = p.limit // the rounds before count
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		s.note = fmt.Sprintf("not done within %v", p.limit)
		if rate > 0 {
			s.rates, s.note = []float64{rate}, s.note+", the rate is that until then"
		}
	default:
		s.note, _, _ = strings.Cut(err.Error(), "\n")
	}
	fmt.Fprintf(os.Stderr, "%-28s round %d: %v\n", s.name, round+1, err)
}
