package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"fairway/internal/batch"
	"fairway/internal/dispatch/records"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// runBare is what one would write without Fairway: exec.Cmd.Run on two slots.
func runBare(program counted, jobs int) (float64, error) {
	next := make(chan struct{}, jobs)
	for range jobs {
		next <- struct{}{}
	}
	close(next)
	failures := make([]error, slots)
	began := time.Now()
	var group sync.WaitGroup
	for i := range slots {
		group.Go(func() {
			for range next {
				failures[i] = errors.Join(failures[i], exec.Command(program.path, program.counter).Run())
			}
		})
	}
	group.Wait()
	return float64(jobs) / time.Since(began).Seconds(), errors.Join(failures...)
}

// text is a workflow of a number of jobs that read nothing; each promises whatever it
// writes under a name with its number, and writes nothing.
const text = `
workflow: noop
steps:
  noop:
    times: %d
    writes: "out-{number}.{found}"
    may_be_empty: true
    command: %s %s
`

// runFairway runs the jobs in a new folder: server, store, pilots as processes.
// The time is all that a person waits for, from opening to the end of the run.
func (r *report) runFairway(ctx context.Context, scratch string, program counted, jobs int) (float64, error) {
	if err := program.reset(); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp(scratch, "run")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	parsed, err := workflow.Parse("workflow.yaml", fmt.Appendf(nil, text, jobs, program.path, program.counter))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	s, err := server.Open(ctx, server.Config{
		RunConfig: server.RunConfig{Workflow: parsed, Folder: folder},
		System:    pilots, Log: slog.New(slog.DiscardHandler),
		Site: taskqueue.Site{MaxPilots: 1, Pilot: taskqueue.Resources{
			MilliCPUs: slots * 1000, Memory: 1 << 30, Disk: 1 << 30,
		}},
	})
	if err != nil {
		return 0, err
	}
	outcome, err := s.Run(ctx)
	took := time.Since(began)
	if err == nil && !outcome.Succeeded {
		err = fmt.Errorf("the run failed: %v", outcome.Problems)
	}
	if err != nil {
		return 0, err
	}
	return float64(jobs) / took.Seconds(), r.check(ctx, folder, program)
}

// pilots starts this program again as the pilot.
func pilots(address string, folders folder.Layout) (batch.System, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config := pilot.Config{
		Server: address, Site: server.LocalSite, SandboxDir: folders.Sandbox, LogDir: folders.Logs,
		Storage: folder.StoragePrefix, Element: folders.Storage, Workflow: folders.Workflow, MilliCPUs: slots * 1000,
		Memory: 1 << 30, Disk: 1 << 30,
		Cache: pilot.CacheConfig{Mode: pilot.CacheHost, Dir: folders.Cache, MaxSpace: 1 << 30},
	}
	return batch.NewLocal(batch.LocalConfig{
		Command: []string{self}, LogDir: folders.Pilots, State: folders.ID,
		Environment: func(launch string) ([]string, error) {
			config := config
			config.Launch = launch
			encoded, err := config.Encode()
			return []string{pilot.ConfigVariable + "=" + encoded}, err
		},
	})
}

// check opens the store again, and compares its commits and the executions that
// were counted outside with the jobs.
func (r *report) check(ctx context.Context, dir string, program counted) error {
	recorded, err := store.OpenSQLite(filepath.Join(dir, folder.StateFolder, folder.StoreFile), store.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { _ = recorded.Close() }()
	commits, err := recorded.Load(ctx, records.TableCommit)
	if err != nil {
		return err
	}
	r.Commits = len(commits)
	if r.Executions, err = program.executions(); err != nil {
		return err
	}
	if r.Commits != r.Jobs || r.Executions != r.Jobs {
		return fmt.Errorf("%d jobs, but %d commits in the store and %d executions counted outside", r.Jobs, r.Commits,
			r.Executions)
	}
	return nil
}
