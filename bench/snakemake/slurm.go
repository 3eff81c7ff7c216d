package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
	testprogram "fairway/test/program"
)

// cluster is a Slurm, and what runs on it.
type cluster struct {
	scratch, record string // record: Slurm's, of the jobs that have ended
	python          string
	env             []string
}

// usualSettings are found by programs of Slurm that are told of none. They lead to those of this Slurm
// while it runs.
const usualSettings = "/etc/slurm/slurm.conf"

func openCluster(ctx context.Context, h *measure.Host) (*cluster, error) {
	scratch := h.TempDir()
	c := &cluster{scratch: scratch, record: filepath.Join(scratch, "jobs.txt")}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	fairway, err := testprogram.Build(scratch)
	if err != nil {
		return nil, err
	}
	c.python = filepath.Join(root, "bin/snakemake-slurm/bin/python")
	source := filepath.Join(root, "python")
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	// The plugin for Slurm asks about jobs that have ended: they are kept, as by default.
	batchtest.Slurm(h, "JobCompType=jobcomp/filetxt", "JobCompLoc="+c.record, "MinJobAge=300", "")
	// Its jobs call srun without the variables of Slurm, so that SLURM_CONF tells them nothing.
	if err := os.Symlink(os.Getenv("SLURM_CONF"), usualSettings); err != nil {
		return nil, fmt.Errorf("for jobs that do not know SLURM_CONF: %w", err)
	}
	h.Cleanup(func() { _ = os.Remove(usualSettings) })
	c.env = append(os.Environ(), "FAIRWAY_BIN="+fairway, "PATH="+filepath.Dir(c.python)+":"+os.Getenv("PATH"))
	return c, c.addPlugin(ctx, filepath.Join(source, "src"),
		filepath.Join(source, "snakemake-executor-plugin-fairway/src"))
}

// install has Snakemake and its plugin for Slurm in an environment of their own.
func (c *cluster) install(ctx context.Context) error {
	folder := filepath.Dir(filepath.Dir(c.python))
	if _, err := os.Stat(filepath.Join(folder, "bin/snakemake")); err == nil {
		return nil
	}
	if _, err := c.command(ctx, "python3", "-m", "venv", folder); err != nil {
		return err
	}
	_, err := c.command(ctx, c.python, "-m", "pip", "-q", "install", "snakemake==9.27.1",
		"snakemake-interface-executor-plugins==9.4.0", "snakemake-executor-plugin-slurm==2.8.0")
	return err
}

// addPlugin has the environment find our packages in the folders of their sources, also in jobs of
// Slurm, which do not get PYTHONPATH.
func (c *cluster) addPlugin(ctx context.Context, folders ...string) error {
	packages, err := c.command(ctx, c.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(strings.TrimSpace(packages), "fairway.pth"),
		[]byte(strings.Join(folders, "\n")+"\n"), 0o644)
}

// reset has Slurm count from zero.
func (c *cluster) reset(ctx context.Context) error {
	_, err := c.command(ctx, "sdiag", "--reset")
	if failure := os.Truncate(c.record, 0); !errors.Is(failure, fs.ErrNotExist) {
		err = errors.Join(err, failure)
	}
	return err
}

// ended waits until Slurm has no jobs that could go on.
func (c *cluster) ended(ctx context.Context) error {
	for {
		left, err := c.command(ctx, "squeue", "--noheader", "--states=PENDING,CONFIGURING,RUNNING,COMPLETING")
		if err != nil || strings.TrimSpace(left) == "" {
			return err
		}
		if err := sched.Default().Sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("jobs did not end: %w; left:\n%s", err, left)
		}
	}
}

var (
	submitted = regexp.MustCompile(`(?m)^Jobs submitted:\s+(\d+)`)
	called    = regexp.MustCompile(`(?m)^\s+([A-Z_0-9]+)\s+\(\s*\d+\)\s+count:(\d+)`)
)

// diagnose tells how many jobs were submitted since reset, and how often slurmctld was called.
func (c *cluster) diagnose(ctx context.Context, r *row) error {
	text, err := c.command(ctx, "sdiag")
	if err != nil {
		return err
	}
	found := submitted.FindStringSubmatch(text)
	byType, _, _ := strings.Cut(text, "by user")
	if found == nil || !strings.Contains(byType, "by message type") {
		return fmt.Errorf("sdiag says nothing of jobs and calls:\n%s", text)
	}
	r.BatchJobs, err = strconv.Atoi(found[1])
	for _, call := range called.FindAllStringSubmatch(byType, -1) {
		count, failure := strconv.Atoi(call[2])
		err = errors.Join(err, failure)
		switch call[1] {
		case "REQUEST_STATS_INFO": // sdiag itself
			continue
		case "REQUEST_SUBMIT_BATCH_JOB":
			r.Submitted = count
		}
		r.Calls += count
	}
	return err
}

// allocated is how many seconds the processors were given to jobs, all together.
func (c *cluster) allocated() (seconds float64, err error) {
	file, err := os.Open(c.record)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(lines.Text()) {
			name, value, _ := strings.Cut(word, "=")
			fields[name] = value
		}
		const form = "2006-01-02T15:04:05"
		began, err := time.Parse(form, fields["StartTime"])
		if err != nil {
			continue // it was cancelled before
		}
		ended, err := time.Parse(form, fields["EndTime"])
		processors, err2 := strconv.ParseFloat(fields["ProcCnt"], 64)
		if err := errors.Join(err, err2); err != nil {
			return 0, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		seconds += processors * ended.Sub(began).Seconds()
	}
	return seconds, nil
}

// command runs a program and returns what it prints.
func (c *cluster) command(ctx context.Context, name string, words ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, words...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(words, " "), err, out)
	}
	return string(out), nil
}
