// Command restart measures how long a server takes that starts again over a store with
// a long run, until it answers: SQLite, both cores, what is counted beside them, and
// the look at the stored files.
//
//	go run ./bench/restart -json
//
// The run has a step of which each job makes one file, and a step of which each job
// reads that file and two inputs, and writes a result. It is made by a real server,
// whose one pilot ends each job when it begins. When the first step is done, the
// server is killed. Each round starts another one over the same store, in a process
// of its own, and kills it when it has told how the run stands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/lib/subprocess"
)

// row is one line of the result.
type row struct {
	Jobs int     `json:"jobs"`
	Load float64 `json:"load_s"`   // from the start of the process until it has told how the run stands
	CPU  float64 `json:"cpu_s"`    // of all its threads
	Peak float64 `json:"peak_mib"` // resident
}

func (r row) String() string {
	return fmt.Sprintf("%8d jobs: served after %.2f s (%.2f s of processors), at most %.0f MiB", r.Jobs, r.Load,
		r.CPU, r.Peak)
}

func main() {
	sizes := flag.String("jobs", "10000,100000,1000000", "jobs of the runs, half of them done")
	keep := flag.String("folder", "", "keep the runs beneath this folder, and use those that are there")
	make := flag.String("make", "", "internal: make the run in this folder")
	serve := flag.String("serve", "", "internal: be the server of this folder")
	jobs := flag.Int("size", 0, "internal: jobs of it")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		ctx := context.Background()
		switch {
		case *make != "":
			return nil, makeRun(ctx, *make, *jobs)
		case *serve != "":
			return nil, serveAgain(ctx, *serve, *jobs, run.Profile)
		case run.Quick:
			*sizes = "100"
		}
		var rows []row
		for _, size := range strings.Split(*sizes, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				return nil, fmt.Errorf("-jobs: %w", err)
			}
			r, err := restarts(*keep, n, run.Rounds(3, 1), run.Profile)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		return measure.Rows("", rows, row.String), nil
	})
}

// restarts measures one size.
func restarts(keep string, jobs, rounds int, profile string) (row, error) {
	folder := filepath.Join(keep, strconv.Itoa(jobs))
	if keep == "" {
		var err error
		if folder, err = os.MkdirTemp("", "restart"); err != nil {
			return row{}, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
	}
	size := []string{"-size", strconv.Itoa(jobs)}
	if _, err := os.Stat(filepath.Join(folder, complete)); err != nil {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return row{}, err
		}
		made, err := subprocess.Start(subprocess.Self(append(size, "-make", folder)...))
		if err != nil {
			return row{}, err
		}
		_, err = made.Hear()
		made.Kill()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, complete), nil, 0o600)
		}
		if err != nil {
			return row{}, fmt.Errorf("making a run of %d jobs: %w", jobs, err)
		}
	}
	var load, cpu, peak []float64
	for range rounds {
		r, err := restart(append(size, "-serve", folder, "-cpuprofile", profile))
		if err != nil {
			return row{}, fmt.Errorf("restarting with %d jobs: %w", jobs, err)
		}
		load, cpu, peak = append(load, r.Load), append(cpu, r.CPU), append(peak, r.Peak)
	}
	return row{Jobs: jobs, Load: measure.Median(load), CPU: measure.Median(cpu), Peak: measure.Median(peak)}, nil
}

// restart measures one server.
func restart(arguments []string) (row, error) {
	began := time.Now()
	server, err := subprocess.Start(subprocess.Self(arguments...))
	if err != nil {
		return row{}, err
	}
	answer, err := server.Hear()
	took := time.Since(began)
	server.Kill()
	used, ok := server.Used()
	if err != nil || answer != served || !ok {
		return row{}, errors.Join(fmt.Errorf("the server said %q", answer), err)
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return row{Load: took.Seconds(), CPU: cpu.Seconds(), Peak: float64(used.Maxrss) / 1024}, nil
}
