package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"fairway/bench/measure"
	"fairway/internal/batch/batchtest"
)

// pythonVariable names a Python that has Parsl, Dask and dask-jobqueue.
const pythonVariable = "FAIRWAY_PEERS_PYTHON"

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
	return all
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
