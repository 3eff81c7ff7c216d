package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
)

// The submissions of paper 3, section V, figures 6 and 7: a workflow of two steps whose second
// merges pairs of files of the first (W3).
//
//   - direct: each job is a job of Slurm. What has ended is asked about each period, and then the
//     second step is submitted, as ProdAgent does.
//   - monitor: pilots are submitted when there are jobs.
//   - running: a server that lasts keeps idle pilots, which are there when the workflow comes.
const (
	firstStep  = 40
	secondStep = firstStep / 2
)

// period is how often a direct submission asks what has ended, and a site about its pilots.
const period = time.Second

// submissionRow is one line of the result: medians over the rounds.
type submissionRow struct {
	Name       string  `json:"name"`
	FirstStart float64 `json:"first_start_s"` // from the submission
	Gap        float64 `json:"gap_s"`         // in which nothing ran, between the first start and the last end
	Turnaround float64 `json:"turnaround_s"`
}

// measureSubmissions measures the three in turn.
func measureSubmissions(ctx context.Context, h *measure.Host, p plan) ([]submissionRow, error) {
	c, err := openCluster(ctx, h, 5*p.length)
	if err != nil {
		return nil, err
	}
	if p.untuned {
		if err := c.untune(ctx); err != nil {
			return nil, err
		}
	}
	ways := []struct {
		name string
		run  func(ctx context.Context, folder string) (began time.Duration, err error)
	}{{"direct", c.direct}, {"monitor", c.monitor}, {"running", c.running}}
	seen := map[string][]submissionRow{}
	for range p.rounds {
		for _, w := range ways {
			r, err := c.submission(ctx, w.run)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			seen[w.name] = append(seen[w.name], r)
		}
	}
	var rows []submissionRow
	for _, w := range ways {
		median := func(of func(submissionRow) float64) float64 {
			var all []float64
			for _, r := range seen[w.name] {
				all = append(all, of(r))
			}
			return measure.Median(all)
		}
		rows = append(rows, submissionRow{
			w.name, median(func(r submissionRow) float64 { return r.FirstStart }),
			median(func(r submissionRow) float64 { return r.Gap }),
			median(func(r submissionRow) float64 { return r.Turnaround }),
		})
	}
	return rows, nil
}

func (c *cluster) submission(
	ctx context.Context, run func(ctx context.Context, folder string) (time.Duration, error),
) (r submissionRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	folder, err := os.MkdirTemp(c.scratch, "round")
	if err != nil {
		return r, err
	}
	if err := c.job.reset(); err != nil {
		return r, err
	}
	began, err := run(ctx, folder)
	if err != nil {
		return r, err
	}
	all, err := c.job.executions(firstStep + secondStep)
	if err != nil {
		return r, err
	}
	first := slices.MinFunc(all, func(a, b execution) int { return cmp.Compare(a.began, b.began) })
	return submissionRow{
		FirstStart: (first.began - began).Seconds(), Gap: idle(all).Seconds(), Turnaround: lastEnd(all, began),
	}, nil
}

// idle is how long nothing ran between the first start and the last end.
func idle(all []execution) (sum time.Duration) {
	all = slices.SortedFunc(slices.Values(all), func(a, b execution) int { return cmp.Compare(a.began, b.began) })
	end := all[0].end
	for _, e := range all {
		sum += max(0, e.began-end)
		end = max(end, e.end)
	}
	return sum
}

func (c *cluster) direct(ctx context.Context, folder string) (began time.Duration, err error) {
	began = clock()
	for i := range firstStep + secondStep {
		if i == firstStep {
			if err := c.endedWithin(ctx, period); err != nil {
				return 0, err
			}
		}
		if _, err := c.sbatch(ctx, folder, fmt.Sprint(i+1)); err != nil {
			return 0, err
		}
	}
	return began, c.ended(ctx)
}

const twoSteps = `workflow: pairs
steps:
  first:
    times: %d
    writes: "a/{number}.txt"
    command: %s "$out"
  second:
    merge: "a/{number}.txt"
    files: 2
    writes: "b/{merge}.txt"
    command: %s "$out"
`

func (c *cluster) twoSteps() string {
	second := c.job.command(fmt.Sprintf("$((%d + 10#$merge))", firstStep))
	return fmt.Sprintf(twoSteps, firstStep, c.job.command("$number"), second)
}

func (c *cluster) monitor(ctx context.Context, folder string) (began time.Duration, err error) {
	began = clock()
	return began, c.run(ctx, folder, c.twoSteps())
}

// running has the server's pilots wait before the workflow comes.
func (c *cluster) running(ctx context.Context, folder string) (began time.Duration, err error) {
	sites := fmt.Sprintf(site+"    min_idle_pilots: %[2]d\n", batchtest.SlurmPartition, slots/batchtest.SlurmCPUs,
		batchtest.SlurmCPUs)
	state := filepath.Join(folder, "server")
	if err := os.Mkdir(state, 0o700); err != nil {
		return 0, err
	}
	for name, text := range map[string]string{"workflow.yaml": c.twoSteps(), "server/sites.yaml": sites} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return 0, err
		}
	}
	server := exec.CommandContext(ctx, c.fairway, "serve", "--state", state, "--site", "cluster")
	server.Dir, server.Stderr = folder, os.Stderr
	if err := server.Start(); err != nil {
		return 0, fmt.Errorf("start a server: %w", err)
	}
	defer func() { _ = server.Wait() }()
	defer func() { _, _ = command(context.WithoutCancel(ctx), folder, "", c.fairway, "stop", "--server", state) }()
	if err := c.idlePilots(ctx, folder, state); err != nil {
		return 0, err
	}
	began = clock()
	if _, err := command(ctx, folder, "", c.fairway, "run", "--server", state); err != nil {
		return 0, err
	}
	if _, err := command(ctx, folder, "", c.fairway, "stop", "--server", state); err != nil {
		return 0, err
	}
	return began, c.ended(ctx)
}

// idlePilots waits until all pilots that the slots have room for are there.
func (c *cluster) idlePilots(ctx context.Context, folder, state string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		text, err := command(ctx, folder, "", c.fairway, "pilots", "--server", state, "--json")
		var said struct {
			Pilots []struct {
				State string `json:"state"`
			} `json:"pilots"`
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &said)
		}
		n := 0
		for _, p := range said.Pilots {
			if p.State == "idle" {
				n++
			}
		}
		if err == nil && n == slots/batchtest.SlurmCPUs {
			return nil
		}
		if sched.Default().Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("pilots did not come: %w; %s", err, strings.TrimSpace(text))
		}
	}
}
