// Containers measures what Fairway adds to jobs in containers: 1,000 jobs by a runtime, on two slots,
// against a loop that calls the same runtime in the same way on two slots. The jobs do nothing, and
// in rows of their own count to some number, which takes them some time. Rounds of the two
// alternate, and medians count. Besides the time it tells what both took of processors, all
// processes together, which hardly depends on what else the machine does.
//
//	go run ./bench/containers -json
//	go run ./bench/containers -count 20000 -rounds 3
//
// Runtimes that are not installed are left out. busybox-static is the image.
package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/bench/measure"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/container"
	"fairway/internal/server/api"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

// slots is how many jobs run at a time.
const slots = 2

func main() {
	jobs := flag.Int("jobs", 1000, "jobs of each round")
	counts := flag.String("count", "0,5000,20000", "to what the jobs count, a row for each; 0: jobs of true")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if run.Quick {
			*jobs, *counts = 10, "0"
		}
		rows, err := measureAll(context.Background(), *jobs, run.Rounds(5, 1), strings.Split(*counts, ","))
		return measure.Rows("", rows, row.String), err
	})
}

// row is a line of the result; all times are for one job.
type row struct {
	measure.Row
	Count     string  `json:"count"` // to what the jobs count
	CPU       float64 `json:"cpu_ns"`
	CPUByHand float64 `json:"cpu_by_hand_ns"`
	CPURatio  float64 `json:"cpu_ratio"`
}

func (r row) String() string {
	return fmt.Sprintf("%-14s to %6s  %6.2f ms a job, %6.2f ms by hand, ratio %.2f; "+
		"of processors %.2f and %.2f ms, ratio %.2f", r.Name, r.Count, r.NS/1e6, r.Yardstick/1e6, r.Ratio,
		r.CPU/1e6, r.CPUByHand/1e6, r.CPURatio)
}

func measureAll(ctx context.Context, jobs, rounds int, counts []string) (rows []row, err error) {
	scratch, err := os.MkdirTemp("", "containers")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fairway := filepath.Join(scratch, "fairway")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", fairway, "./cmd/fairway").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building fairway: %w\n%s", err, out)
	}
	if err := makeImage(filepath.Join(scratch, "image.tar")); err != nil {
		return nil, err
	}
	root := filepath.Join(scratch, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if _, err := container.Unpack(ctx, filepath.Join(scratch, "image.tar"), root); err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, fairway, "open", "--pilots", fmt.Sprint(slots))
	server.Dir = scratch
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }()
	client, err := reach(ctx, scratch)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, runtime := range []string{"bubblewrap", "charliecloud"} {
		if _, err := exec.LookPath(workflow.Runtimes[runtime]); err != nil {
			continue
		}
		for _, count := range counts {
			b := &round{client: client, runtime: runtime, step: runtime + count, call: container.Call{
				Root: root, Dir: scratch, Writable: []string{scratch, root}, Argv: countTo(count),
			}}
			if _, err := b.fairway(ctx, 10*slots); err != nil { // each pilot unpacks the image
				return nil, err
			}
			ours, byHand := processors{of: server.Process.Pid}, processors{of: os.Getpid(), without: server.Process.Pid}
			compared, err := measure.Alternate(runtime, rounds,
				ours.counted(jobs, func() (float64, error) { return b.fairway(ctx, jobs) }),
				byHand.counted(jobs, func() (float64, error) { return b.byHand(ctx, jobs) }))
			if err != nil {
				return nil, err
			}
			r := row{Row: compared, Count: count, CPU: measure.Median(ours.spent), CPUByHand: measure.Median(byHand.spent)}
			r.CPURatio = r.CPU / r.CPUByHand
			fmt.Fprintln(os.Stderr, "containers:", r)
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// countTo is a command that takes its time.
func countTo(count string) []string {
	if count == "0" {
		return []string{"true"}
	}
	return []string{"sh", "-c", "i=0; while [ $i -lt " + count + " ]; do i=$((i+1)); done"}
}

// processors counts what rounds take of processors.
type processors struct {
	of, without int       // processes, with all below them
	spent       []float64 // nanoseconds of each job, by round
}

// counted has a round counted.
func (p *processors) counted(jobs int, round func() (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		before := p.now()
		took, err := round()
		p.spent = append(p.spent, float64(p.now()-before)/float64(jobs))
		return took, err
	}
}

func (p *processors) now() time.Duration {
	spent := measure.ProcessorTimeOfTree(p.of)
	if p.without != 0 {
		spent -= measure.ProcessorTimeOfTree(p.without)
	}
	return spent
}

// makeImage writes busybox as a tar of all files.
func makeImage(path string) error {
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tar.NewWriter(file)
	for _, name := range []string{"bin/true", "bin/sh"} {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}
		err = errors.Join(err, w.WriteHeader(header))
		if err == nil {
			_, err = w.Write(program)
		}
	}
	return errors.Join(err, w.Close(), file.Close())
}

// reach waits for the server.
func reach(ctx context.Context, folder string) (*listen.Connection, error) {
	for deadline := time.Now().Add(time.Minute); ; {
		client, err := api.Connect(ctx, folder)
		if err == nil && client.Live || time.Now().After(deadline) {
			return client, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// round runs one round of jobs.
type round struct {
	client  *listen.Connection
	runtime string
	step    string // of the jobs
	call    container.Call
	made    int
}

// fairway returns nanoseconds per job, from the submission to the end of the last one.
func (r *round) fairway(ctx context.Context, jobs int) (float64, error) {
	request := &wire.SubmitRequest{}
	for range jobs {
		r.made++
		request.Jobs = append(request.Jobs, &wire.SubmittedJob{
			Name: fmt.Sprint(r.step, "-", r.made), Step: r.step,
			Payload: &wire.Payload{Argv: r.call.Argv, Container: &wire.Container{Image: "image.tar", Runtime: r.runtime}},
			Reads:   []*wire.SubmittedInput{{Lfn: "image.tar", File: "image.tar"}},
		})
	}
	endings, err := r.client.Endings(ctx, &wire.EndingsRequest{})
	if err != nil {
		return 0, err
	}
	defer endings.Close()
	if !endings.Receive() { // from now on it tells all
		return 0, endings.Err()
	}
	began := time.Now()
	if _, err := r.client.Submit(ctx, request); err != nil {
		return 0, err
	}
	for ended := 0; ended < jobs && endings.Receive(); {
		for _, job := range endings.Msg().GetJobs() {
			if s := job.GetSummary(); s.GetState() != "done" {
				return 0, fmt.Errorf("job %d %s: %s", s.GetId(), s.GetState(), s.GetReason())
			}
			ended++
		}
	}
	return float64(time.Since(began)) / float64(jobs), endings.Err()
}

// byHand returns nanoseconds per call of the runtime.
func (r *round) byHand(ctx context.Context, jobs int) (float64, error) {
	began := time.Now()
	var group errgroup.Group
	for slot := range slots {
		group.Go(func() error {
			for range (jobs + slot) / slots {
				program, argv, err := r.call.Command(r.runtime)
				if err != nil {
					return err
				}
				command := exec.CommandContext(ctx, program, argv[1:]...)
				command.Env = append(os.Environ(), "USER=root")
				if out, err := command.CombinedOutput(); err != nil {
					return fmt.Errorf("%q: %w\n%s", argv, err, out)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(time.Since(began)) / float64(jobs), err
}
