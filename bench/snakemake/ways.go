package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fairway/internal/batch/batchtest"
)

// way is one way to give the jobs of Snakemake to Slurm.
type way struct {
	name  string
	flags []string
	group bool // rules name a group
}

// together is how many jobs an array or a group has.
const together = 50

// ofSlurm are for the plugin for Slurm, which waits for 40 s before it looks at jobs unless it is told.
var ofSlurm = []string{
	"--executor", "slurm", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5",
	"--seconds-between-status-checks", "5", "--default-resources", "slurm_partition=" + batchtest.SlurmPartition,
	"slurm_account=none", "mem_mb=100", "runtime=10",
}

var ways = []way{
	{name: "fairway", flags: []string{
		"--executor", "fairway", "--fairway-run", "run", "--fairway-site", "cluster",
	}},
	{name: "slurm", flags: ofSlurm},
	{name: "slurm-array", flags: append([]string{
		"--slurm-array-jobs", "all", "--slurm-array-limit", strconv.Itoa(together),
	}, ofSlurm...)},
	{name: "slurm-groups", group: true, flags: append([]string{
		"--group-components", fmt.Sprintf("some=%d", together), "--cores", strconv.Itoa(batchtest.SlurmCPUs),
	}, ofSlurm...)},
}

const snakefile = `rule all:
    input: expand("made/{i}", i=range(%d))
rule one:
    output: "made/{i}"
%s    shell: "sleep 1; touch {output}"
`

// sites has pilots on all slots.
var sites = fmt.Sprintf(`sites:
  cluster:
    system: slurm
    partition: %s
    max_pilots: %d
    cpus: %d
    time: 1h
    poll: 1s
`, batchtest.SlurmPartition, batchtest.SlurmNodes, batchtest.SlurmCPUs)

// measure runs the jobs in one way.
func (c *cluster) measure(ctx context.Context, w way, jobs int, limit time.Duration) (row, error) {
	folder, err := os.MkdirTemp(c.scratch, w.name)
	if err != nil {
		return row{}, err
	}
	group := ""
	if w.group {
		group = "    group: \"some\"\n"
	}
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "run"), 0o755),
		os.WriteFile(filepath.Join(folder, "run", "sites.yaml"), []byte(sites), 0o600),
		os.WriteFile(filepath.Join(folder, "Snakefile"), fmt.Appendf(nil, snakefile, jobs, group), 0o644),
		c.reset(ctx),
	); err != nil {
		return row{}, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	err = c.snakemake(limited, folder, append([]string{"--jobs", strconv.Itoa(jobs), "--scheduler", "greedy"}, w.flags...))
	r := row{Name: w.name, Turnaround: time.Since(began).Seconds()}
	made, _ := os.ReadDir(filepath.Join(folder, "made"))
	r.Jobs = len(made)
	switch {
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		r.Note = fmt.Sprintf("not done within %v: %d of %d jobs", limit, r.Jobs, jobs)
		if _, err := c.command(ctx, "scancel", "--partition="+batchtest.SlurmPartition); err != nil {
			return row{}, err
		}
	case err != nil:
		return row{}, err
	case r.Jobs != jobs:
		return row{}, fmt.Errorf("%d of %d files were made", r.Jobs, jobs)
	}
	if err := c.ended(ctx); err != nil {
		return row{}, err
	}
	if err := c.diagnose(ctx, &r); err != nil {
		return row{}, err
	}
	seconds, err := c.allocated()
	r.CoreHours, r.Slot = seconds/3600, seconds/float64(max(1, r.Jobs))
	return r, err
}

// printed is what a job of Slurm has printed, the first that there is.
func printed(folder string) []byte {
	logs, _ := filepath.Glob(filepath.Join(folder, ".snakemake/slurm_logs/*/*/*.log"))
	if len(logs) == 0 {
		return nil
	}
	text, _ := os.ReadFile(logs[0])
	return text
}

// orderly is how long Snakemake may take to end after Ctrl-C.
const orderly = time.Minute

// snakemake runs it in a folder.
func (c *cluster) snakemake(ctx context.Context, folder string, words []string) error {
	words = append([]string{"-m", "snakemake", "--quiet", "rules", "progress"}, words...)
	command := exec.CommandContext(ctx, c.python, words...)
	command.Dir, command.Env = folder, c.env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = orderly
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		return fmt.Errorf("snakemake: %w\n%s\n%s", err, text[max(0, len(text)-2000):], printed(folder))
	}
	return nil
}
