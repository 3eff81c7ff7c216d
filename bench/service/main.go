// Command service measures a server that lasts: durable jobs per second, how soon a job that is
// ready is assigned, what an open page costs, and what jobs cost that wait.
//
//	go run ./bench/service -json
//	go run ./bench/service -only waiting -waiting 1000000
//
// The server is a real one in a process of its own, with its records in SQLite or in a real
// PostgreSQL that waits for the disk, which the benchmark starts. This process submits jobs to open
// runs over TLS, a hundred in a call, and has 16 pilots that speak the real protocol over TLS, each
// over a connection of its own. They are light: a job ends when it begins, and nothing is executed.
// All are on this machine, and share its processors.
//
// A row "jobs" has as many jobs done as possible; each goes through submission, matching, report
// and commit, and counts when the server has acknowledged its result, which is durable then. After
// that jobs come at half of that rate: assign_p99_ms is the time from the call that submits a job
// until a pilot has it, which all but 1 % are within; assign_p99_at_2500_ms is the same when 2,500 come
// a second. A job is ready within that call, so it is more than the time from ready to assigned. In a
// row "page" the same jobs are done in turns with and without a client that reads the live events
// of the first page of a run, as a browser does: ratio is what a job takes of the server's
// processors, with the client over without. A row "waiting" has many jobs wait, of 200 requirement
// classes in 200 runs, each with a command and an output, and then starts another server over
// them. A row "hyperqueue" is its server with a journal, and with workers that execute nothing
// either.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
)

// plan says how much to measure.
type plan struct {
	stores  []string
	runs    []int
	jobs    int           // of each round of a row
	paced   time.Duration // for which jobs come at half of the rate
	rounds  int
	waiting []int // jobs of each row "waiting"
	pilots  int
	profile string // file of a profile of the server's processors
	memory  string // file of a profile of its memory while jobs wait
	folder  string // of states; empty: where the system keeps temporary files
}

var (
	full = plan{
		stores: []string{sqlite, postgres}, runs: []int{1, 100}, jobs: 60_000, paced: 10 * time.Second, rounds: 3,
		waiting: []int{1_000_000}, pilots: 16,
	}
	short = plan{
		stores: []string{sqlite}, runs: []int{1, 10}, jobs: 3000, paced: time.Second, rounds: 1, waiting: []int{10_000},
		pilots: 16,
	}
)

// Stores.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// row is one line of the result. What does not belong to it is 0.
type row struct {
	Name  string  `json:"name"`
	Store string  `json:"store,omitempty"`
	Runs  int     `json:"runs,omitempty"`
	Jobs  int     `json:"jobs"`
	Rate  float64 `json:"jobs_per_s"` // of waiting jobs: that were matched, and done
	P99   float64 `json:"assign_p99_ms,omitempty"`
	Calm  float64 `json:"assign_p99_at_2500_ms,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`

	// Processor time for each job, in µs: of the server, of its database, and of this process with
	// the pilots and those who submit.
	Server   float64 `json:"server_us_per_job,omitempty"`
	Database float64 `json:"store_us_per_job,omitempty"`
	Load     float64 `json:"load_us_per_job,omitempty"`

	Submitted     float64 `json:"submitted_per_s,omitempty"`       // waiting jobs
	Heap          float64 `json:"heap_bytes_per_job,omitempty"`    // in use
	Resident      float64 `json:"resident_mib,omitempty"`          // when all wait
	Start         float64 `json:"start_s,omitempty"`               // of another server, until it has answered
	Peak          float64 `json:"start_resident_mib,omitempty"`    // then
	Slowest       float64 `json:"slowest_ms,omitempty"`            // page or command
	SlowestName   string  `json:"slowest,omitempty"`               // which
	Meanwhile     float64 `json:"submitting_slowest_ms,omitempty"` // the same, while jobs are submitted
	MeanwhileName string  `json:"submitting_slowest,omitempty"`
}

func main() {
	stores := flag.String("stores", "", "stores, separated by commas: sqlite, postgres")
	runs := flag.String("runs", "", "numbers of runs at once, separated by commas")
	jobs := flag.Int("jobs", 0, "jobs of each round; 0 for the usual number")
	waiting := flag.Int("waiting", 0, "jobs that wait; 0 for the usual number")
	memory := flag.String("memprofile", "", "write a profile of the server's memory while jobs wait to this file")
	folder := flag.String("folder", "", "make the states beneath this folder")
	var s serverConfig
	flag.StringVar(&s.folder, "serve", "", "internal: be the server of this folder")
	flag.StringVar(&s.store, "store", "", "internal: its store")
	flag.IntVar(&s.pilots, "launches", 0, "internal: its pilots")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		ctx := context.Background()
		if s.folder != "" {
			return nil, serve(ctx, s)
		}
		p := full
		if run.Quick {
			p = short
		}
		if *stores != "" {
			p.stores = strings.Split(*stores, ",")
		}
		if *runs != "" {
			p.runs = nil
			for _, text := range strings.Split(*runs, ",") {
				n, err := strconv.Atoi(text)
				if err != nil {
					return nil, fmt.Errorf("-runs: %w", err)
				}
				p.runs = append(p.runs, n)
			}
		}
		p.rounds = run.Rounds(p.rounds, p.rounds)
		p.jobs = cmp.Or(*jobs, p.jobs)
		if *waiting > 0 {
			p.waiting = []int{*waiting}
		}
		p.profile, p.memory, p.folder = run.Profile, *memory, *folder
		rows, err := measureAll(ctx, p, strings.FieldsFunc(run.Only, func(r rune) bool { return r == ',' }))
		return measure.Rows("", rows, row.String), err
	})
}

// measureAll measures the rows of these names; all if there are none.
func measureAll(ctx context.Context, p plan, only []string) (rows []row, err error) {
	host := measure.NewHost("service", p.folder)
	defer host.End()
	wanted := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	if wanted("jobs") {
		rows, err = jobRows(ctx, host, p)
	}
	if err == nil && wanted("hyperqueue") {
		var more []row
		more, err = hyperQueueRows(ctx, host, p)
		rows = append(rows, more...)
	}
	if err == nil && wanted("page") {
		var r row
		r, err = pageRow(ctx, host, p)
		rows = append(rows, r)
	}
	for _, jobs := range p.waiting {
		if err != nil || !wanted("waiting") {
			break
		}
		var r row
		r, err = waitingRow(ctx, host, p, jobs)
		rows = append(rows, r)
	}
	return rows, err
}

func (r row) String() string {
	switch r.Name {
	case "page":
		return fmt.Sprintf("%-10s %-8s %7.0f jobs/s, ratio %.3f (server %.0f µs a job)", r.Name, r.Store, r.Rate,
			r.Ratio, r.Server)
	case "waiting":
		return fmt.Sprintf("%-10s %-8s %8d jobs: %.0f submitted/s, %.0f bytes each, %.0f MiB resident, started after %.1f s "+
			"(%.0f MiB), %.0f matches/s, slowest %.0f ms (%s), while they come %.0f ms (%s)", r.Name, r.Store, r.Jobs,
			r.Submitted, r.Heap, r.Resident, r.Start, r.Peak, r.Rate, r.Slowest, r.SlowestName, r.Meanwhile, r.MeanwhileName)
	}
	return fmt.Sprintf("%-10s %-8s %3d runs: %7.0f jobs/s, assigned within %.1f ms, of %d/s within %.1f ms; "+
		"µs a job: server %.0f, database %.0f, load %.0f", r.Name, r.Store, r.Runs, r.Rate, r.P99, calmRate, r.Calm,
		r.Server, r.Database, r.Load)
}
