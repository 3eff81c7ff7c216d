package main

import (
	"bytes"
	"context"
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
	testprogram "fairway/test/program"
)

// slots is how many jobs run at a time: on two nodes, the others take no jobs.
const slots = 2 * batchtest.SlurmCPUs

// patience bounds one round of one way.
const patience = 6 * time.Minute

// way is one way to have jobs run. Both calls return when all jobs have ended.
type way struct {
	name string
	// many runs the jobs 1 to n, of which none needs another.
	many func(ctx context.Context, folder string, n int) error
	// chain runs the jobs 1 to n, each after the one before.
	chain func(ctx context.Context, folder string, n int) error

	turnarounds, gaps []float64
}

// cluster is a Slurm with slots, and the programs that run on it.
type cluster struct {
	scratch string
	fairway string
	job     program
}

func openCluster(ctx context.Context, h *measure.Host, length time.Duration) (*cluster, error) {
	batchtest.Slurm(h)
	scratch, err := os.MkdirTemp("", "pilots")
	if err != nil {
		return nil, err
	}
	h.Cleanup(func() { _ = os.RemoveAll(scratch) })
	drained := fmt.Sprintf("NodeName=n[%d-%d]", slots/batchtest.SlurmCPUs+1, batchtest.SlurmNodes)
	if _, err := command(ctx, scratch, "", "scontrol", "update", drained, "State=DRAIN", "Reason=slots"); err != nil {
		return nil, err
	}
	fairway, err := testprogram.Build(scratch)
	if err != nil {
		return nil, err
	}
	job, err := buildProgram(ctx, scratch, length)
	return &cluster{scratch: scratch, fairway: fairway, job: job}, err
}

// untune takes the parameters of the scheduler out of the settings of Slurm.
func (c *cluster) untune(ctx context.Context) error {
	settings := os.Getenv("SLURM_CONF")
	text, err := os.ReadFile(settings)
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "SchedulerParameters=") {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(settings, []byte(kept.String()), 0o644); err != nil {
		return err
	}
	_, err = command(ctx, c.scratch, "", "scontrol", "reconfigure")
	return err
}

func measureAll(ctx context.Context, h *measure.Host, p plan) (*report, error) {
	c, err := openCluster(ctx, h, p.length)
	if err != nil {
		return nil, err
	}
	if p.untuned {
		if err := c.untune(ctx); err != nil {
			return nil, err
		}
	}
	ways := []*way{
		{name: "slurm-jobs", many: c.jobs, chain: c.jobChain},
		{name: "slurm-array", many: c.array, chain: c.arrayChain},
		{name: "fairway", many: c.pilots, chain: c.pilotChain},
	}
	if p.peers {
		ways = append(ways, c.peers(ctx, h)...)
	}
	if p.ways != "" {
		wanted := strings.Split(p.ways, ",")
		ways = slices.DeleteFunc(ways, func(w *way) bool { return !slices.Contains(wanted, w.name) })
	}
	for range p.rounds {
		for _, w := range ways {
			if err := c.round(ctx, w, p); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	version, err := command(ctx, c.scratch, "", "sbatch", "--version")
	r := &report{
		Jobs: p.jobs, Rounds: p.rounds, Slots: slots, Untuned: p.untuned, Floor: p.length.Seconds() * float64(p.jobs) / slots,
		Slurm: strings.TrimSpace(version), Machine: measure.ThisMachine(),
	}
	took := map[string]float64{}
	for _, w := range ways {
		took[w.name] = measure.Median(w.turnarounds)
		r.Rows = append(r.Rows, row{w.name, took[w.name], measure.Median(w.gaps)})
	}
	if took["slurm-array"] > 0 {
		r.Ratio = took["fairway"] / took["slurm-array"]
	}
	return r, err
}

// round runs both series of a way in new folders.
func (c *cluster) round(ctx context.Context, w *way, p plan) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	series := func(run func(ctx context.Context, folder string, n int) error, n int) ([]execution, time.Duration, error) {
		folder, err := os.MkdirTemp(c.scratch, "round")
		if err != nil {
			return nil, 0, err
		}
		if err := c.job.reset(); err != nil {
			return nil, 0, err
		}
		began := clock()
		if err := run(ctx, folder, n); err != nil {
			return nil, 0, err
		}
		all, err := c.job.executions(n)
		return all, began, err
	}
	all, began, err := series(w.many, p.jobs)
	if err != nil {
		return err
	}
	w.turnarounds = append(w.turnarounds, lastEnd(all, began))
	if all, _, err = series(w.chain, p.chain); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	w.gaps = append(w.gaps, gap(all))
	return nil
}

// sbatch submits a script and returns the job's number.
func (c *cluster) sbatch(ctx context.Context, folder, number string, options ...string) (string, error) {
	script := "#!/bin/sh\nexec " + c.job.command(number) + "\n"
	out, err := command(ctx, folder, script, "sbatch", append([]string{"--parsable", "--output=/dev/null"}, options...)...)
	return strings.TrimSpace(out), err
}

// ended waits until Slurm has no jobs.
func (c *cluster) ended(ctx context.Context) error { return c.endedWithin(ctx, 200*time.Millisecond) }

// endedWithin is ended for who asks once a period.
func (c *cluster) endedWithin(ctx context.Context, period time.Duration) error {
	for {
		left, err := command(ctx, c.scratch, "", "squeue", "--noheader", "--states=PENDING,CONFIGURING,RUNNING,COMPLETING")
		if err != nil || strings.TrimSpace(left) == "" {
			return err
		}
		if err := sched.Default().Sleep(ctx, period); err != nil {
			return fmt.Errorf("jobs did not end: %w; left:\n%s", err, left)
		}
	}
}

func (c *cluster) jobs(ctx context.Context, folder string, n int) error {
	for i := range n {
		if _, err := c.sbatch(ctx, folder, fmt.Sprint(i+1)); err != nil {
			return err
		}
	}
	return c.ended(ctx)
}

func (c *cluster) array(ctx context.Context, folder string, n int) error {
	if _, err := c.sbatch(ctx, folder, "$SLURM_ARRAY_TASK_ID", fmt.Sprintf("--array=1-%d", n)); err != nil {
		return err
	}
	return c.ended(ctx)
}

func (c *cluster) jobChain(ctx context.Context, folder string, n int) error {
	before := ""
	for i := range n {
		var options []string
		if i > 0 {
			options = []string{"--dependency=afterok:" + before}
		}
		var err error
		if before, err = c.sbatch(ctx, folder, fmt.Sprint(i+1), options...); err != nil {
			return err
		}
	}
	return c.ended(ctx)
}

// arrayChain has an array of one job for each link.
func (c *cluster) arrayChain(ctx context.Context, folder string, n int) error {
	before := ""
	for i := range n {
		options := []string{fmt.Sprintf("--array=%d", i+1)}
		if i > 0 {
			options = append(options, "--dependency=afterok:"+before)
		}
		var err error
		if before, err = c.sbatch(ctx, folder, "$SLURM_ARRAY_TASK_ID", options...); err != nil {
			return err
		}
	}
	return c.ended(ctx)
}

const site = `sites:
  cluster:
    system: slurm
    partition: %s
    max_pilots: %d
    cpus: %d
    time: 1h
    poll: 1s
`

// pilots has one job for each of many outputs.
func (c *cluster) pilots(ctx context.Context, folder string, n int) error {
	return c.run(ctx, folder, fmt.Sprintf(`workflow: pilots
steps:
  job:
    times: %d
    writes: "out-{number}.{found}"
    may_be_empty: true
    command: %s
`, n, c.job.command("$number")))
}

// pilotChain has a step for each link, which reads what the one before wrote.
func (c *cluster) pilotChain(ctx context.Context, folder string, n int) error {
	var text strings.Builder
	fmt.Fprintf(&text, "workflow: chain\nsteps:\n  s1:\n    writes: f1\n    command: %s f1\n", c.job.command("1"))
	for i := 2; i <= n; i++ {
		fmt.Fprintf(&text, "  s%[1]d:\n    each: f%[2]d\n    writes: f%[1]d\n    command: %[3]s f%[1]d\n", i, i-1,
			c.job.command(fmt.Sprint(i)))
	}
	return c.run(ctx, folder, text.String())
}

// run runs a workflow with pilots on the slots, and waits until Slurm has none left.
func (c *cluster) run(ctx context.Context, folder, workflow string) error {
	sites := fmt.Sprintf(site, batchtest.SlurmPartition, slots/batchtest.SlurmCPUs, batchtest.SlurmCPUs)
	for name, text := range map[string]string{"workflow.yaml": workflow, "sites.yaml": sites} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if _, err := command(ctx, folder, "", c.fairway, "run", "--site", "cluster"); err != nil {
		return err
	}
	return c.ended(ctx)
}

// command runs a program in a folder and returns what it writes to its output.
func command(ctx context.Context, folder, input, name string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = folder
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(arguments, " "), err, out.String(),
			said.String())
	}
	return out.String(), nil
}
