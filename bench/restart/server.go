package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync/atomic"

	"fairway/internal/batch"
	"fairway/internal/flow/workflow"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

const text = `
workflow: restart
inputs:
  genome: {files: genome.fa}
  genes: {files: genes.gff}
steps:
  align:
    times: %d
    writes: "aligned/{number}.bam"
    tools: [` + tool + `]
    command: align --part "$number" > "$out"
  count:
    each: "aligned/{number}.bam"
    reads: {genome: genome.fa, genes: genes.gff}
    writes: "counts/{number}.tsv"
    tools: [count]
    command: count --genes "$genes" --genome "$genome" "aligned/$number.bam" > "$out"
`

// tool is what the pilot has: that of the first step alone.
const tool = "align"

// What the processes say on their standard output.
const (
	made   = "made"
	served = "served"
)

// complete is a file in the folder of a run that is made.
const complete = "complete"

// start opens the server of a folder whose run has so many jobs.
func start(ctx context.Context, dir string, jobs int, pilots *pilots) (*server.Server, error) {
	parsed, err := workflow.Parse("workflow.yaml", fmt.Appendf(nil, text, jobs/2))
	if err != nil {
		return nil, err
	}
	return server.Open(ctx, server.Config{
		RunConfig: server.RunConfig{Workflow: parsed, Folder: dir},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Site:      taskqueue.Site{Name: server.LocalSite, MaxPilots: 1, Tools: []string{tool}},
		System:    pilots.at,
	})
}

// makeRun has half of the jobs done, says so, and waits to be killed.
func makeRun(ctx context.Context, dir string, jobs int) error {
	for _, input := range []string{"genome.fa", "genes.gff"} {
		if err := os.WriteFile(filepath.Join(dir, input), []byte(input), 0o600); err != nil {
			return err
		}
	}
	p := &pilots{left: jobs / 2}
	s, err := start(ctx, dir, jobs, p)
	if err != nil {
		return err
	}
	outcome, err := s.Run(ctx)
	return errors.Join(fmt.Errorf("the run ended too early: %v", outcome.Problems), err)
}

// serveAgain goes on with the run. It says when it has answered a question of how the
// run stands, and goes on until it is killed.
func serveAgain(ctx context.Context, dir string, jobs int, profile string) error {
	if profile != "" {
		file, err := os.Create(profile)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			return err
		}
	}
	s, err := start(ctx, dir, jobs, &pilots{})
	if err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() {
		err := ask(ctx, dir, jobs)
		pprof.StopCPUProfile()
		if err == nil {
			fmt.Println(served)
		}
		asked <- err
	}()
	go func() {
		outcome, err := s.Run(ctx)
		asked <- errors.Join(fmt.Errorf("the run ended: %v", outcome.Problems), err)
	}()
	if err := <-asked; err != nil {
		return err
	}
	return <-asked
}

// ask makes sure that the whole run is there, half of it done.
func ask(ctx context.Context, dir string, jobs int) error {
	client, transport := listen.Client(func(ctx context.Context) (net.Conn, error) {
		return listen.Dial(ctx, filepath.Join(dir, folder.StateFolder))
	})
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, err := client.Progress(ctx, &wire.ProgressRequest{})
	if err != nil {
		return err
	}
	if !reports.Receive() {
		return fmt.Errorf("asking how the run stands: %w", reports.Err())
	}
	total, done := int64(0), int64(0)
	for _, step := range reports.Msg().GetSteps() {
		total, done = total+step.GetTotal(), done+step.GetDone()
	}
	if total != int64(jobs) || done != int64(jobs/2) {
		return fmt.Errorf("%d jobs, %d of them done: want %d and half of them", total, done, jobs)
	}
	return nil
}

// pilots is a batch system with one pilot at the most, which is not there when the run
// goes on.
type pilots struct {
	left    int                    // jobs to be done until the run is made
	launch  atomic.Pointer[string] // that works; nil: none
	roots   storage.Roots
	address string
}

func (p *pilots) at(address string, folders folder.Layout) (batch.System, error) {
	p.roots, p.address = folders.Roots(), address[len("unix:"):]
	return p, nil
}

// Submit is part of batch.System.
func (p *pilots) Submit(ctx context.Context, launch string) error {
	if p.left > 0 && p.launch.CompareAndSwap(nil, &launch) {
		go func() {
			if err := p.work(context.WithoutCancel(ctx), launch); err != nil {
				fmt.Fprintln(os.Stderr, "the pilot:", err)
				os.Exit(1)
			}
			fmt.Println(made)
		}()
	}
	return nil
}

// Status is part of batch.System.
func (p *pilots) Status(context.Context) (map[string]batch.Status, error) {
	if launch := p.launch.Load(); launch != nil {
		return map[string]batch.Status{*launch: {State: batch.Running, Jobs: 1}}, nil
	}
	return nil, nil
}

// Withdraw is part of batch.System.
func (p *pilots) Withdraw(context.Context, ...string) error { return nil }

// work ends jobs of the first step until all are committed.
func (p *pilots) work(ctx context.Context, launch string) error {
	client := wire.NewTaskQueueClient(&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.address)
		},
	}}, "http://fairway")
	next := &wire.SyncRequest{Protocol: wire.Protocol, Pilot: launch + "-0", Seq: 1, Full: true, Hello: &wire.PilotInfo{
		Host: "node", Site: server.LocalSite, Launch: launch, Tools: []string{tool},
		Has: &wire.Resources{MilliCpus: 100_000, MemoryBytes: 1 << 40, DiskBytes: 1 << 40},
	}}
	for {
		answer, err := client.Sync(ctx, next)
		if err != nil {
			return err
		}
		if p.left -= len(next.GetEnded()); p.left <= 0 {
			return nil
		}
		next = &wire.SyncRequest{
			Protocol: wire.Protocol, Pilot: next.Pilot, Seq: next.Seq + 1, LastAnswer: answer.GetNumber(),
		}
		for _, a := range answer.GetRun() {
			result := &wire.Result{Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt()}
			for _, o := range a.GetOutputs() {
				file := &wire.WrittenFile{Lfn: o.GetLfn(), Version: o.GetVersion()}
				file.Pfn = storage.OutputPFN(folder.StoragePrefix, o.GetLfn(), o.GetVersion(), a.GetAttempt())
				if err := p.write(file.GetPfn()); err != nil {
					return err
				}
				result.Outputs = append(result.Outputs, file)
			}
			next.Ended = append(next.Ended, &wire.Report{Result: result, Ticket: a.GetTicket()})
		}
		next.Hold = len(next.Ended) == 0
	}
}

func (p *pilots) write(pfn string) error {
	path, err := p.roots.Path(pfn)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, nil, 0o400)
	}
	return err
}
