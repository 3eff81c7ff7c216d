// Package serverjob has the server of a run be a batch job of a site, and watches it from the
// machine where the run was started, for login nodes that end long processes. The job runs the
// same command in the same folder, with the name of its launch in [Variable].
//
// Several jobs may be the server, one after the other: each submits its successor before its
// time is over. Which one has the state is decided by its terms (package term), not here.
package serverjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fairway/internal/batch"
	"fairway/internal/batch/allocation"
	"fairway/internal/bootstrap"
	"fairway/internal/pilot/process"
	"fairway/internal/server"
	"fairway/internal/server/active"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/site"
	"fairway/lib/sched"
)

// Variable tells a process that it is the batch job of a launch, and is to be the server.
const Variable = "FAIRWAY_SERVER"

// Pause is how often one that waits for a server looks whether it is there.
const Pause = 200 * time.Millisecond

// SilentTime is how long a server says nothing that is taken for dead, whatever the batch
// system says of its job: as long as others wait before they follow it, and as long again for
// the batch system to say so itself, which may start the job once more.
const SilentTime = 2 * term.SilentTime

// lockTime is how long the job of a server waits for others that have the lock for a
// moment, such as a command that cancels a job while nothing runs.
const lockTime = 10 * time.Second

// Running reports whether this process is such a job.
func Running() bool { return os.Getenv(Variable) != "" }

// This is the batch job that this process is, at a site.
func This(ctx context.Context, s *site.Site) *active.Job {
	left := s.Request.Time
	if a, err := allocation.Find(ctx); err == nil {
		if told, ends := a.Left(); ends {
			left = told
		}
	}
	return &active.Job{
		Launch: os.Getenv(Variable), Site: s.Name, Left: left, Poll: s.Pace(),
		System: func(l folder.Layout) (batch.System, error) { return system(s, l) },
	}
}

// Open opens the server of this process, which may be such a job.
func Open(ctx context.Context, config server.Config) (*server.Server, error) {
	for until := time.Now().Add(lockTime); ; {
		s, err := server.Open(ctx, config)
		_, locked := errors.AsType[*folder.RunningError](err)
		_, held := errors.AsType[*term.HeldError](err)
		if !Running() || !locked && !held || time.Now().After(until) {
			return s, err
		}
		if err := sched.Default().Sleep(ctx, Pause); err != nil {
			return nil, err
		}
	}
}

// system is the batch system that takes jobs which are servers. They begin with the
// arguments and in the folder of this process.
func system(s *site.Site, l folder.Layout) (site.System, error) {
	programs := filepath.Join(l.State, folder.ServersName, "bin")
	program, err := bootstrap.Keep(programs)
	if err != nil {
		return nil, fmt.Errorf("copying this program for the nodes: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	servers := filepath.Join(l.State, folder.ServersName)
	return s.Open(site.Launcher{
		State: l.ID, Folder: servers, Server: true, Environment: process.Handed,
		Start: func(launch string) (bootstrap.Start, error) {
			start := bootstrap.InPlace(bootstrap.Path(programs, program.Hash), logOf(l, launch), os.Args[1:]...)
			start.Before += fmt.Sprintf("cd %s || exit\nexport %s=%s\n", bootstrap.Quote(here), Variable, launch)
			if config := os.Getenv("XDG_CONFIG_HOME"); config != "" {
				start.Before += "export XDG_CONFIG_HOME=" + bootstrap.Quote(config) + "\n"
			}
			return start, nil
		},
	})
}

// logOf is the file of what a server that is a batch job prints.
func logOf(l folder.Layout, launch string) string {
	return filepath.Join(l.State, folder.ServersName, launch+".log")
}

// Withdraw takes the job of a server back that waits in a queue.
func Withdraw(s *site.Site, l folder.Layout, launch string) error {
	jobs, err := system(s, l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), batch.CallTime)
	defer cancel()
	if err := jobs.Withdraw(ctx, launch); err != nil {
		return &WithdrawError{Site: s.Name, File: term.PendingFile(l.State), Err: err}
	}
	return term.Forget(l.State, l.ID, launch)
}

// WithdrawError says that the batch system did not take a job back. If it has no such job,
// File may be removed.
type WithdrawError struct {
	Site, File string
	Err        error
}

func (e *WithdrawError) Error() string {
	return fmt.Sprintf("the job of the server could not be cancelled: %v", e.Err)
}

// Unwrap returns what the batch system says.
func (e *WithdrawError) Unwrap() error { return e.Err }

// OtherSiteError says that a job of another site is to be the server already.
type OtherSiteError struct{ Site, Folder string }

func (e *OtherSiteError) Error() string {
	return fmt.Sprintf("a job of the site %s is to be the server of the workflow in %s", e.Site, e.Folder)
}
