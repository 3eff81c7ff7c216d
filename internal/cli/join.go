//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/cli/call"
	"fairway/internal/cli/console"
	"fairway/internal/flow/workflow"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// adding are jobs that exec or map adds to the open run of a folder. Several calls in one folder share
// the run: it is closed when the last of them has left. One that comes when it is closed waits until it
// has ended, and opens it again.
type adding struct {
	c    *commands
	o    *runOptions
	jobs []*wire.SubmittedJob
	refs []*wire.SubmittedRef // of the jobs, once they are added

	yielded atomic.Bool // a signal has given the jobs up, and the run goes on for others
}

// submit adds the jobs to the open run of the folder, and waits for them. It is the server if
// there is none.
func (c *commands) submit(ctx context.Context, o *runOptions, l *call.Call, work *workflow.Workflow) error {
	jobs, err := l.Jobs(ctx, o.config.Folder, work)
	if err != nil {
		return err
	}
	c.Own = make(map[string]bool, len(jobs))
	for _, job := range jobs {
		c.Own[job.GetName()] = true
	}
	a := &adding{c: c, o: o, jobs: jobs}
	conclude := func(report *wire.ProgressReport) error {
		return c.concludeJobs(l, a.refs, report,
			func(do console.Asking) error { return console.AskIn(ctx, o.config.Folder, do) })
	}
	var began time.Time // of waiting for a server that does not answer
	for {
		leave, err := a.join(ctx)
		switch {
		case err == nil:
			defer leave()
			return conclude(nil)
		case connect.CodeOf(err) == connect.CodeAborted || console.ServerGone(err):
			began = time.Time{}
			if err := sched.Default().Sleep(ctx, console.EndingPause); err != nil {
				return err
			}
			continue
		case !errors.Is(err, console.ErrNothingRuns):
			return console.WithInstead(o.config.Folder, console.Explained(err))
		}
		report, first, err := a.open(ctx)
		switch failed, _ := errors.AsType[*console.Failure](err); {
		case failed != nil && failed.Code == console.ExitRunning && (began.IsZero() ||
			time.Since(began) < console.EndingTime):
			if began.IsZero() { // another call opens the run, or the last one has not ended
				began = time.Now()
			}
			if err := sched.Default().Sleep(ctx, console.EndingPause); err != nil {
				return err
			}
		case err != nil:
			return err
		case first != nil && (a.yielded.Load() || !report.GetSucceeded()):
			return console.Quietly(signalCode(first))
		default:
			return conclude(report)
		}
	}
}

// join adds the jobs to a run that is open, and waits for them. The run is held until leave is called.
func (a *adding) join(ctx context.Context) (leave func(), err error) {
	connection, err := console.ReachRunning(ctx, a.o.config.Folder)
	if err != nil {
		return nil, err
	}
	if connection == nil {
		return nil, console.ErrNothingRuns
	}
	if err := console.RefuseStopped(a.o.config.Folder, connection); err != nil {
		connection.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	leave = func() { cancel(); connection.Close() }
	if err = a.add(ctx, connection, true); err == nil {
		return leave, nil
	}
	defer leave()
	if connect.CodeOf(err) == connect.CodeAborted {
		a.c.Announce(fmt.Sprintf("fairway: the run in %s takes no more jobs; waiting until it has ended",
			console.FolderText(a.o.config.Folder)))
		_ = awaitEnd(ctx, connection)
	}
	return nil, err
}

// open opens the run, and is its server until the last call that adds jobs has left.
func (a *adding) open(ctx context.Context) (*wire.ProgressReport, os.Signal, error) {
	a.o.shared = func() {
		a.yielded.Store(true)
		go a.cancel(ctx)
	}
	return a.c.serveRun(ctx, a.o, func(ctx context.Context) error {
		for {
			connection := console.RunningIn(ctx, a.o.config.Folder)
			if connection == nil {
				return nil // the run has ended already, as by a signal
			}
			err := a.add(ctx, connection, false)
			if err == nil {
				_, err = connection.CloseInput(ctx, &wire.CloseInputRequest{Leave: true})
			}
			connection.Close()
			if !console.ServerGone(err) {
				return console.Explained(err)
			}
			if err := sched.Default().Sleep(ctx, console.EndingPause); err != nil { // its records are read again, say
				return err
			}
		}
	})
}

// cancel gives the jobs up, where the run goes on for others.
func (a *adding) cancel(ctx context.Context) {
	connection := console.RunningIn(ctx, a.o.config.Folder)
	if connection == nil {
		return
	}
	defer connection.Close()
	for _, job := range a.jobs {
		_, _ = connection.Cancel(ctx, &wire.CancelRequest{Jobs: []string{job.GetName()}}) // those that have not ended
	}
}

// add submits the jobs, and waits until they have come to their ends, or the run has.
func (a *adding) add(ctx context.Context, client wire.WorkflowClient, hold bool) error {
	stream, err := client.Endings(ctx, &wire.EndingsRequest{Hold: hold})
	if err != nil {
		return err
	}
	if !hold {
		defer stream.Close()
	}
	if !stream.Receive() { // from now on no end is missed
		return stream.Err()
	}
	if a.refs, err = console.AddJobs(ctx, client, a.jobs, a.o.config.WaitAnyway); err != nil {
		return err
	}
	left := map[string]bool{}
	for _, ref := range a.refs {
		if ref.GetKnown() {
			job, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: ref.GetName()})
			if err != nil {
				return err
			}
			if ended(job.GetSummary()) {
				continue
			}
		}
		left[ref.GetName()] = true
	}
	for len(left) > 0 && stream.Receive() {
		for _, job := range stream.Msg().GetJobs() {
			delete(left, job.GetSummary().GetName())
		}
	}
	if len(left) == 0 {
		return nil
	}
	return stream.Err()
}
