package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"fairway/bench/measure"
	"fairway/lib/subprocess"
)

// hqVariable names the program of HyperQueue, built so that its workers execute nothing.
const hqVariable = "FAIRWAY_PEERS_HQ"

// hyperQueueRows measures HyperQueue's server, if its program is there.
func hyperQueueRows(ctx context.Context, host *measure.Host, p plan) ([]row, error) {
	hq := os.Getenv(hqVariable)
	if hq == "" {
		host.Logf("service: hyperqueue is left out: set %s (see bench/service/RESULTS.md)", hqVariable)
		return nil, nil
	}
	var rounds []row
	for range p.rounds {
		r, err := hyperQueueRound(ctx, host, p, hq)
		if err != nil {
			return nil, fmt.Errorf("hyperqueue: %w", err)
		}
		rounds = append(rounds, r)
	}
	return []row{medians(rounds)}, nil
}

// hyperQueueRound submits one array of jobs and waits until all are done.
func hyperQueueRound(ctx context.Context, host *measure.Host, p plan, hq string) (row, error) {
	folder := host.TempDir()
	command := func(arguments ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, hq, append([]string{"--server-dir=" + folder}, arguments...)...)
		cmd.Dir = folder
		return cmd
	}
	var children []*subprocess.Child
	defer func() {
		for _, c := range children {
			c.Kill()
		}
	}()
	start := func(arguments ...string) error {
		c, err := subprocess.Start(command(arguments...))
		if err == nil {
			children = append(children, c)
		}
		return err
	}
	if err := start("server", "start", "--journal="+filepath.Join(folder, "journal")); err != nil {
		return row{}, err
	}
	for until := time.Now().Add(patience); command("server", "info").Run() != nil; time.Sleep(10 * look) {
		if time.Now().After(until) {
			return row{}, fmt.Errorf("its server has not started within %v", patience)
		}
	}
	for range p.pilots {
		if err := start("worker", "start", "--cpus=1"); err != nil {
			return row{}, err
		}
	}
	if out, err := command("worker", "wait", strconv.Itoa(p.pilots)).CombinedOutput(); err != nil {
		return row{}, fmt.Errorf("its workers: %w: %s", err, out)
	}
	server := children[0].Process().Pid
	before, began := measure.ProcessorTime(server), time.Now()
	out, err := command("submit", fmt.Sprintf("--array=1-%d", p.jobs), "--stdout=none", "--stderr=none", "--wait", "true").
		CombinedOutput()
	if err != nil {
		return row{}, fmt.Errorf("%w: %s", err, out)
	}
	took := time.Since(began)
	return row{
		Name: "hyperqueue", Store: "journal", Runs: 1, Jobs: p.jobs, Rate: float64(p.jobs) / took.Seconds(),
		Server: micros(measure.ProcessorTime(server)-before, p.jobs),
	}, nil
}
