package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const snakefile = `rule all:
    input: expand("made/{i}", i=range(%d))
rule one:
    output: "made/{i}"
    shell: "touch {output}"
`

// submit starts a job of cluster-generic, and prints what tells it from others.
const submit = "#!/bin/sh\nsetsid sh \"$1\" >/dev/null 2>&1 &\necho $!\n"

// snakefiles are the ways to have the jobs of a Snakefile run.
func (b *bench) snakefiles(jobs int) (all []*subject) {
	few := max(1, jobs/10) // Snakemake takes a second to start
	for _, way := range []struct {
		name  string
		jobs  int
		flags []string
	}{
		{"fairway", jobs, []string{"--executor", "fairway", "--jobs", "100"}},
		{"fairway cold", few, []string{"--executor", "fairway", "--fairway-cold", "--jobs", "100"}},
		{"local", jobs, []string{"--cores", fmt.Sprint(slots)}},
		{"cluster-generic", few, []string{
			"--executor", "cluster-generic", "--jobs", fmt.Sprint(slots), "--cluster-generic-submit-cmd", "./submit",
			"--seconds-between-status-checks", "0", "--max-status-checks-per-second", "100",
		}},
	} {
		all = append(all, &subject{
			name: "snakemake " + way.name, tasks: way.jobs,
			run: func(ctx context.Context, jobs int) (float64, error) { return b.snakemake(ctx, jobs, way.flags) },
		})
	}
	return all
}

// snakemake runs a Snakefile, and returns jobs a second, with all that comes before and after them.
func (b *bench) snakemake(ctx context.Context, jobs int, flags []string) (float64, error) {
	if err := b.install(ctx, "snakemake, snakemake_executor_plugin_cluster_generic", "snakemake==9.27.1",
		"snakemake-executor-plugin-cluster-generic"); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp(b.folder, "snakemake")
	if err != nil {
		return 0, err
	}
	for name, text := range map[string]string{"Snakefile": fmt.Sprintf(snakefile, jobs), "submit": submit} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	_, err = b.run(ctx, folder, b.python, append([]string{
		"-m", "snakemake", "--quiet", "rules", "progress", "--scheduler", "greedy",
	}, flags...)...)
	took := time.Since(began)
	made, failure := os.ReadDir(filepath.Join(folder, "made"))
	if err == nil {
		err = failure
	}
	if err == nil && len(made) != jobs {
		err = fmt.Errorf("%d of %d files were made", len(made), jobs)
	}
	return float64(len(made)) / took.Seconds(), err
}
