package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// peer is another system that can run the jobs on two slots.
type peer struct {
	name  string
	needs []string // programs; the row is left out without them
	// jobs is how many it is given: those that need minutes for 5,000 get fewer.
	jobs int
	// prepare writes files into the folder and returns the command.
	prepare func(folder, program string, jobs int) ([]string, error)
}

// python is the interpreter that finds the modules of Debian's packages.
const python = "/usr/bin/python3"

// peerPatience is how long a peer may take.
const peerPatience = 3 * time.Minute

var peers = []peer{
	{"xargs", []string{"xargs"}, 5000, prepareXargs},
	{"gnu-parallel", []string{"parallel"}, 2000, prepareParallel},
	{"makeflow", []string{"makeflow"}, 1000, prepareMakeflow},
	{"work-queue", []string{"work_queue_worker", "cc"}, 5000, prepareWorkQueue},
	{"dask", []string{python}, 2000, prepareDask},
}

func measurePeers(ctx context.Context, scratch, program string, jobs int) []row {
	var rows []row
	for _, p := range peers {
		rate, err := p.measure(ctx, scratch, program, min(jobs, p.jobs))
		switch {
		case errors.Is(err, errAbsent):
			fmt.Fprintf(os.Stderr, "noop: %s is left out: %v\n", p.name, err)
		case err != nil:
			fmt.Fprintf(os.Stderr, "noop: %s failed: %v\n", p.name, err)
		default:
			rows = append(rows, row{Name: p.name, JobsPerSec: rate, Note: fmt.Sprintf("%d jobs", min(jobs, p.jobs))})
		}
	}
	return rows
}

var errAbsent = errors.New("it is not installed")

func (p *peer) measure(ctx context.Context, scratch, program string, jobs int) (float64, error) {
	for _, name := range p.needs {
		if _, err := exec.LookPath(name); err != nil {
			return 0, fmt.Errorf("%w (%s)", errAbsent, name)
		}
	}
	folder, err := os.MkdirTemp(scratch, p.name)
	if err != nil {
		return 0, err
	}
	counter := filepath.Join(folder, "executions")
	if err := os.WriteFile(counter, nil, 0o600); err != nil {
		return 0, err
	}
	command, err := p.prepare(folder, program+" "+counter, jobs)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Dir = folder
	began := time.Now()
	out, err := run.CombinedOutput()
	took := time.Since(began)
	if strings.Contains(string(out), "ModuleNotFoundError") {
		return 0, fmt.Errorf("%w (%s)", errAbsent, lastLine(out))
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, lastLine(out))
	}
	if done, err := (counted{counter: counter}).executions(); err != nil || done != jobs {
		return 0, fmt.Errorf("it executed %d of %d jobs: %w", done, jobs, err)
	}
	return float64(jobs) / took.Seconds(), nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func write(folder, name, text string) error {
	return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700)
}

func prepareXargs(folder, program string, jobs int) ([]string, error) {
	// Each line becomes one execution; the number itself is not passed on.
	return []string{"sh", "-c", "xargs -P2 -I{} " + program + " < list"},
		write(folder, "list", strings.Repeat("x\n", jobs))
}

func prepareParallel(folder, program string, jobs int) ([]string, error) {
	return []string{"sh", "-c", "parallel -j2 < list"}, write(folder, "list", strings.Repeat(program+"\n", jobs))
}

func prepareMakeflow(folder, program string, jobs int) ([]string, error) {
	var rules strings.Builder
	for i := range jobs {
		fmt.Fprintf(&rules, "out%d:\n\t%s && : > out%d\n", i, program, i)
	}
	return []string{"makeflow", "-T", "local", "-j", "2", "rules"}, write(folder, "rules", rules.String())
}

// workQueueManager is a program, since Debian has Work Queue's library for C and
// none for Python.
//
//go:embed peers/work_queue.c
var workQueueManager string

// prepareWorkQueue compiles the manager before the time counts.
func prepareWorkQueue(folder, program string, jobs int) ([]string, error) {
	if err := write(folder, "manager.c", workQueueManager); err != nil {
		return nil, err
	}
	cc := exec.Command("cc", "-O2", "-I/usr/include/cctools", "-o", "manager", "manager.c", "-lwork_queue", "-ldttools",
		"-lz", "-lm")
	cc.Dir = folder
	if out, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: compiling its manager needs coop-computing-tools-dev and zlib1g-dev: %w\n%s",
			errAbsent, err, out)
	}
	return []string{"./manager", program, fmt.Sprint(jobs)}, nil
}

const daskClient = `
import subprocess, sys
from distributed import Client, LocalCluster
if __name__ == "__main__":
    command, jobs = sys.argv[1].split(), int(sys.argv[2])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather(client.map(lambda i: subprocess.call(command), range(jobs), pure=False))
`

func prepareDask(folder, program string, jobs int) ([]string, error) {
	return []string{python, "client.py", program, fmt.Sprint(jobs)}, write(folder, "client.py", daskClient)
}
