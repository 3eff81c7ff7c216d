// Sim measures the simulator at the size of the Grid: 170 sites and up to
// 100,000 pilots, around the TaskQueue of the product, which matches up to
// 1,000,000 jobs. Each size runs in a process of its own, so that its peak
// of memory is its own too.
//
// With -json it prints one object with the machine and rows {jobs, pilots,
// events, seconds, peak_mib}.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
)

// row is what one size took.
type row struct {
	Jobs    int     `json:"jobs"`
	Pilots  int     `json:"pilots"`
	Events  int     `json:"events"`
	Seconds float64 `json:"seconds"`
	PeakMiB int     `json:"peak_mib"`
}

// sites is the number of computing centres of the WLCG (paper 3, section I);
// a tenth as many pilots as jobs makes 100,000 at the largest size, its
// number of processors.
const (
	sites        = 170
	jobsPerPilot = 10
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	one := flag.Int("jobs", 0, "run only this size, in this process")
	profile := flag.String("cpuprofile", "", "with -jobs: write a CPU profile to this file")
	flag.Parse()
	if *one > 0 {
		check(profiled(*profile, func() error { return report(*one) }))
		return
	}
	var rows []row
	for _, jobs := range []int{10_000, 100_000, 1_000_000} {
		r, err := apart(jobs)
		check(err)
		rows = append(rows, r)
	}
	check(measure.Print(rows, *asJSON, func(r row) string {
		return fmt.Sprintf("%9d jobs %7d pilots %9d events %7.1f s %6d MiB %6.2f µs/event",
			r.Jobs, r.Pilots, r.Events, r.Seconds, r.PeakMiB, 1e6*r.Seconds/float64(r.Events))
	}))
}

// profiled calls f and, if a file is named, writes a CPU profile of it.
func profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return f()
}

// report measures one size and prints its row.
func report(jobs int) error {
	r, err := simulate(jobs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/sim:", err)
		os.Exit(1)
	}
}

// apart measures one size in a process of its own.
func apart(jobs int) (row, error) {
	command := exec.Command(os.Args[0], "-jobs", strconv.Itoa(jobs))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return row{}, fmt.Errorf("%d jobs: %w", jobs, err)
	}
	var r row
	if err := json.Unmarshal(out, &r); err != nil {
		return row{}, fmt.Errorf("%d jobs: %w", jobs, err)
	}
	return r, nil
}

func simulate(jobs int) (row, error) {
	plan, err := experiment.Parse("bench.yaml", []byte(layers(jobs)))
	if err != nil {
		return row{}, err
	}
	point := plan.Points[0].Experiment
	point.Timeline = false // nobody draws it here
	began := time.Now()
	run, err := sim.Once(point, 0)
	if err != nil {
		return row{}, err
	}
	seconds := time.Since(began).Seconds()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return row{}, fmt.Errorf("ask for the peak of memory: %w", err)
	}
	if done := int(run.Of("jobs_done")); done != jobs {
		return row{}, fmt.Errorf("%d of %d jobs are done", done, jobs)
	}
	return row{
		Jobs: jobs, Pilots: int(run.Of("pilots")), Events: int(run.Of("events")),
		Seconds: seconds, PeakMiB: int(usage.Maxrss / 1024),
	}, nil
}

// layers describes layers of jobs, each of which reads two files of the
// layer before, on sites whose nodes have eight slots.
func layers(jobs int) string {
	perSite := max(jobs/jobsPerPilot/sites, 1)
	nodes := (perSite + 7) / 8
	text := fmt.Sprintf(`
experiment: bench
seed: 1
workflow: {pattern: layers, jobs: %d, layers: 5, fan: 2, file_size: 700MB, run: {mean: 10m, sd: 2m, least: 1m}}
cache: {share: pilot, size: 10GB, spare: 2GB, inputs: true}
network: {latency: {mean: 50ms, sd: 10ms}, remote: 100MB}
taskqueue: {hold: 15m}
storage:
`, jobs)
	where := "sites:\n"
	for i := range sites {
		text += fmt.Sprintf("  - {name: se%d, bandwidth: 10GB, connection: 100MB, latency: 50ms}\n", i)
		where += fmt.Sprintf("  - {name: s%d, nodes: %d, slots: 8, storage: se%d, started: %d, batch: {poll: 60s}}\n", i,
			nodes, i, perSite)
	}
	return text + where
}
