package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
)

const (
	// pythonVariable names a Python that has Parsl, Dask and dask-jobqueue.
	pythonVariable = "FAIRWAY_PEERS_PYTHON"
	// hqVariable names the program of HyperQueue.
	hqVariable = "FAIRWAY_PEERS_HQ"
)

var (
	//go:embed peers/parsl.py
	parslProgram string
	//go:embed peers/dask.py
	daskProgram string
)

// peers are the ways of others to have jobs run in jobs of Slurm, as far as they are
// installed.
func (c *cluster) peers(ctx context.Context, h *measure.Host) []*way {
	python := cmp.Or(os.Getenv(pythonVariable), "python3")
	var all []*way
	for _, p := range []struct{ name, module, program string }{
		{"parsl", "parsl", parslProgram}, {"dask-jobqueue", "dask_jobqueue", daskProgram},
	} {
		if _, err := command(ctx, c.scratch, "", python, "-c", "import "+p.module); err != nil {
			h.Logf("%s is left out: %s has no module %s (set %s)", p.name, python, p.module, pythonVariable)
			continue
		}
		run := func(series string) func(context.Context, string, int) error {
			return func(ctx context.Context, folder string, n int) error {
				return c.python(ctx, folder, python, p.program, series, n)
			}
		}
		all = append(all, &way{name: p.name, many: run("many"), chain: run("chain")})
	}
	hq, err := exec.LookPath(cmp.Or(os.Getenv(hqVariable), "hq"))
	if err != nil {
		h.Logf("hyperqueue is left out: %v (set %s)", err, hqVariable)
		return all
	}
	return append(all, &way{
		name: "hyperqueue",
		many: func(ctx context.Context, folder string, n int) error {
			return c.hyperqueue(ctx, folder, hq, "submit", fmt.Sprintf("--array=1-%d", n), "--stdout=none", "--stderr=none",
				"sh", "-c", "exec "+c.job.command("$HQ_TASK_ID"))
		},
		chain: func(ctx context.Context, folder string, n int) error {
			var jobs strings.Builder
			for i := range n {
				fmt.Fprintf(&jobs, "[[task]]\nid = %d\ncommand = [\"sh\", \"-c\", %q]\n", i+1,
					"exec "+c.job.command(fmt.Sprint(i+1)))
				if i > 0 {
					fmt.Fprintf(&jobs, "deps = [%d]\n", i)
				}
			}
			file := filepath.Join(folder, "chain.toml")
			if err := os.WriteFile(file, []byte(jobs.String()), 0o600); err != nil {
				return err
			}
			return c.hyperqueue(ctx, folder, hq, "job", "submit-file", file)
		},
	})
}

// hyperqueue runs the jobs of one submission with workers that HyperQueue has Slurm start
// (its automatic allocation), on as many nodes as Fairway gets.
func (c *cluster) hyperqueue(ctx context.Context, folder, hq string, submission ...string) error {
	call := func(arguments ...string) error {
		_, err := command(ctx, folder, "", hq, append([]string{"--server-dir=" + folder}, arguments...)...)
		return err
	}
	server := exec.CommandContext(ctx, hq, "--server-dir="+folder, "server", "start")
	server.Dir = folder
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	for call("server", "info") != nil {
		if err := sched.Default().Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	nodes := fmt.Sprint(slots / batchtest.SlurmCPUs)
	for _, step := range [][]string{
		{
			"alloc", "add", "slurm", "--time-limit=1h", "--max-worker-count=" + nodes, "--backlog=" + nodes,
			fmt.Sprintf("--cpus=%d", batchtest.SlurmCPUs), "--", "--partition=" + batchtest.SlurmPartition,
			fmt.Sprintf("--cpus-per-task=%d", batchtest.SlurmCPUs),
		},
		submission,
		{"job", "wait", "last"},
		{"server", "stop"},
	} {
		if err := call(step...); err != nil {
			return err
		}
	}
	return c.ended(ctx)
}

// python runs a program of a peer with as many nodes and processors as Fairway gets.
func (c *cluster) python(ctx context.Context, folder, python, text, series string, n int) error {
	program := filepath.Join(folder, "peer.py")
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := command(ctx, folder, "", python, program, series, fmt.Sprint(n),
		batchtest.SlurmPartition, fmt.Sprint(slots/batchtest.SlurmCPUs), fmt.Sprint(batchtest.SlurmCPUs),
		c.job.path, c.job.times, fmt.Sprint(c.job.length.Milliseconds()))
	if err != nil {
		return err
	}
	return c.ended(ctx)
}
