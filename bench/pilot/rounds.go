package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/internal/pilot"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

const (
	// jobLength is the mean of the exponential lengths of the jobs that end.
	jobLength = 5 * time.Millisecond
	// patience bounds the wait for one report.
	patience = time.Minute
	// warmUp is the number of jobs at the start of a round that don't count.
	warmUp = 20
)

func measureAll(ctx context.Context, rounds int, each time.Duration) (*report, error) {
	scratch, err := os.MkdirTemp("", "pilot")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	jobs, err := buildProgram(ctx, scratch)
	if err != nil {
		return nil, err
	}
	sched.Default().React()
	var idle, saturated []time.Duration
	for range rounds {
		if idle, err = round(ctx, idle, scratch, jobs, 0, each); err != nil {
			return nil, fmt.Errorf("idle: %w", err)
		}
		if saturated, err = round(ctx, saturated, scratch, jobs, runtime.NumCPU(), each); err != nil {
			return nil, fmt.Errorf("saturated: %w", err)
		}
	}
	r := &report{Rows: []row{summary("idle", idle), summary("saturated", saturated)}, Machine: measure.ThisMachine()}
	r.Ratio = r.Rows[1].P99 / r.Rows[0].P99
	return r, nil
}

// round adds to reactions those of a new pilot that runs one job that ends after
// the other, beside some that compute.
func round(
	ctx context.Context, reactions []time.Duration, scratch string, jobs program, computing int, lasts time.Duration,
) ([]time.Duration, error) {
	folder, err := os.MkdirTemp(scratch, "round")
	if err != nil {
		return nil, err
	}
	q, stop, err := listen(sched.Default(), filepath.Join(folder, "socket"))
	if err != nil {
		return nil, err
	}
	defer stop()
	agent, err := startPilot(folder, computing+1)
	if err != nil {
		return nil, err
	}
	for range computing {
		q.start(jobs.computing())
	}
	for began, n := time.Now(), 0; err == nil && time.Since(began) < lasts; n++ {
		var d time.Duration
		if d, err = q.runOne(ctx, jobs); err == nil && n >= warmUp {
			reactions = append(reactions, d)
		}
	}
	q.dismiss()
	return reactions, errors.Join(err, agent.Wait())
}

// startPilot starts this program again as a pilot for so many jobs at a time.
func startPilot(folder string, jobs int) (*exec.Cmd, error) {
	config := pilot.Config{
		Server: "unix:" + filepath.Join(folder, "socket"), Launch: "bench", Site: "bench",
		SandboxDir: filepath.Join(folder, "sandbox"), LogDir: filepath.Join(folder, "logs"),
		Storage:   filepath.Join(folder, "storage"),
		MilliCPUs: int64(jobs) * 1000, Memory: 1 << 30, Disk: 1 << 30, Grace: time.Second,
	}
	encoded, err := config.Encode()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), pilot.ConfigVariable+"="+encoded)
	cmd.Stderr = log
	// a session, as package batch makes one
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	return cmd, cmd.Start()
}

// runOne has the pilot run a job that ends at a random moment, and returns how
// long its report took.
func (q *queue) runOne(ctx context.Context, jobs program) (time.Duration, error) {
	q.start(jobs.sleeping(time.Duration(rand.ExpFloat64() * float64(jobLength))))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := sched.Receive(ctx, q.sched, q.arrivals)
	if err != nil {
		return 0, err
	}
	if a.result.GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED {
		return 0, fmt.Errorf("a job failed: %s", a.result.GetMessage())
	}
	end, err := jobs.lastEnd()
	return a.at - end, err
}

func summary(name string, reactions []time.Duration) row {
	r := row{Name: name, Samples: len(reactions)}
	if r.Samples == 0 {
		return r
	}
	slices.Sort(reactions)
	var sum time.Duration
	for _, d := range reactions {
		sum += d
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	r.Mean = us(sum) / float64(r.Samples)
	r.P50, r.P99, r.Max = us(reactions[r.Samples/2]), us(reactions[r.Samples*99/100]), us(reactions[r.Samples-1])
	return r
}
