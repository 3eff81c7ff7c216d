package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/internal/storage/storagetest"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/netns"
)

// round is one run of a point of the experiment, with real pilots.
type round struct {
	*measure.Host
	fairway string // the program
	exp     *experiment.Experiment
	seed    uint64 // of the simulated run beside it
	jobs    []sim.Job
}

// workflow describes the jobs, each of which takes a whole pilot. There is a step for each,
// as the simulator has them. The first ones read a byte that comes into a folder, the gate.
func (r *round) workflow(gate string) string {
	q := &r.exp.TaskQueue
	wait := "0s" // never
	if q.WaitForData >= 0 {
		wait = q.WaitForData.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "workflow: cache\ninputs:\n  gate: {watch: '%s/{gate}.open', as: '{gate}', close: file "+
		"%s/closed}\nsteps:\n", gate, gate)
	for _, j := range r.jobs {
		fmt.Fprintf(&b, "  %s:\n    writes: [%s]\n    publish: false\n    needs: {cpus: %d}\n", j.Name,
			strings.Join(j.Writes, ", "), runtime.NumCPU())
		fmt.Fprintf(&b, "    wait_for_data: %s\n    retry: {attempts: %d, backoff: %s}\n", wait, q.Attempts, q.Backoff)
		reads := j.Reads
		if len(reads) == 0 {
			reads = []string{"gate"}
		}
		fmt.Fprintf(&b, "    reads: [%s]\n", strings.Join(reads, ", "))
		fmt.Fprintf(&b, "    command: |\n      cat $in >/dev/null; sleep %.3f; head -c %d /dev/zero >$out\n", j.Run.Seconds(),
			r.exp.Workflow.FileSize)
	}
	return b.String()
}

// open opens the gate when all pilots are there, so that they wait for jobs as in the
// experiment, and returns the moment.
func (r *round) open(ctx context.Context, dir, gate string) (time.Time, error) {
	client, transport := listen.Client(func(ctx context.Context) (net.Conn, error) {
		return listen.Dial(ctx, filepath.Join(dir, folder.StateFolder))
	})
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		reports, err := client.Progress(ctx, &wire.ProgressRequest{})
		if err == nil && reports.Receive() && reports.Msg().GetPilotsIdle()+
			reports.Msg().GetPilotsBusy() >= int64(r.exp.Sites[0].Started) {
			began := time.Now()
			return began, errors.Join(
				os.WriteFile(filepath.Join(gate, "part"), []byte("\n"), 0o644),
				os.Rename(filepath.Join(gate, "part"), filepath.Join(gate, "gate.open")),
				os.WriteFile(filepath.Join(gate, "closed"), nil, 0o644),
			)
		}
		if err == nil {
			_ = reports.Close()
		}
		_ = sched.Default().WaitUntil(ctx, time.Now().Add(50*time.Millisecond))
	}
	return time.Time{}, fmt.Errorf("waiting for the pilots: %w", ctx.Err())
}

// run executes the jobs on pilots that share nothing with the server.
func (r *round) run(ctx context.Context) (*row, error) {
	site := &r.exp.Sites[0]
	network := netns.New(r)
	server := network.Add("server", nil)
	e := r.newElement(network.Add("element", nil), storagetest.WebDAV(r), server.Address)
	var hosts []*netns.Host
	for i := range site.Nodes {
		h := network.Add(fmt.Sprintf("host%d", i), netns.Apart())
		h.Limit(int(r.exp.Network.Bandwidth * 8 / 1e6))
		hosts = append(hosts, h)
	}
	// What hosts may not see is below /srv.
	dir, err := os.MkdirTemp("/srv", "fairway-cache")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	beside := r.TempDir()
	gate := filepath.Join(beside, "gate")
	_, system := network.Batch(hosts, site.Slots)
	sites := fmt.Sprintf("sites:\n  hosts:\n    shares: nothing\n    cache: %s\n    %s\n", r.exp.Cache.Share, system)
	err = errors.Join(
		os.Chmod(beside, 0o755),
		os.Mkdir(gate, 0o755),
		os.WriteFile(filepath.Join(dir, "workflow.yaml"), []byte(r.workflow(gate)), 0o644),
		os.WriteFile(filepath.Join(dir, "sites.yaml"), []byte(sites), 0o644),
	)
	if err != nil {
		return nil, err
	}
	var out, failed bytes.Buffer
	c := server.Command(ctx, r.fairway, "-C", dir, "run", "--json", "--site", "hosts", "--listen", server.Address+":0",
		"--storage", "dav://"+e.address+"/store", "--placement", r.exp.TaskQueue.Placement, "--watch-inputs", "none")
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Start(); err != nil {
		return nil, err
	}
	running, ended := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- c.Wait()
		ended()
	}()
	began, notBegun := r.open(running, dir, gate)
	if notBegun != nil {
		_ = c.Process.Kill()
	}
	if err := <-done; err != nil || notBegun != nil {
		return nil, fmt.Errorf("%w: %s%s", errors.Join(notBegun, err), failed.String(), out.String())
	}
	last, err := r.lastEnd(ctx, dir)
	if err != nil {
		return nil, err
	}
	var report struct {
		Summary struct {
			Attempts float64
			Cached   float64 `json:"bytes_cached"`
			Staged   float64 `json:"bytes_staged"`
			StageIn  float64 `json:"stage_in_seconds"`
			Hidden   float64 `json:"hidden_seconds"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, err
	}
	s := &report.Summary
	return &row{
		HitRatio: s.Cached / max(1, s.Cached+s.Staged), // all files have one size, but for the gate
		StageIn:  (s.StageIn - s.Hidden) / float64(len(r.jobs)), Hidden: s.Hidden / max(1e-9, s.StageIn),
		Turnaround: last.Sub(began).Seconds(), ElementBytes: float64(e.bytes.Load()),
		Failed: s.Attempts - float64(len(r.jobs)),
	}, nil
}

// lastEnd is when the last of the jobs was done.
func (r *round) lastEnd(ctx context.Context, dir string) (last time.Time, err error) {
	jobs := len(r.jobs)
	out, err := exec.CommandContext(ctx, r.fairway, "-C", dir, "jobs", "--json", "--limit", fmt.Sprint(jobs+1)).Output()
	if err != nil {
		return last, fmt.Errorf("fairway jobs: %w: %s", err, out)
	}
	var list struct {
		Jobs []struct {
			State string
			Ended time.Time
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return last, err
	}
	if len(list.Jobs) != jobs {
		return last, fmt.Errorf("fairway jobs lists %d jobs of %d", len(list.Jobs), jobs)
	}
	for _, j := range list.Jobs {
		if j.State != "done" {
			return last, fmt.Errorf("a job is %s", j.State)
		}
		if j.Ended.After(last) {
			last = j.Ended
		}
	}
	return last, nil
}
