package active

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fairway/internal/batch"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/lib/sched"
)

// Job says that the server is a batch job itself. People reach it over the network, and
// it has another job follow it before its time is over.
type Job struct {
	Launch, Site string
	// Left is what is left of the time of the job; 0: there is no end that is known.
	Left time.Duration
	// Poll is the least time between two questions to the batch system of Site.
	Poll time.Duration
	// System is the batch system that takes jobs which are servers.
	System func(folder.Layout) (batch.System, error)
}

const (
	// MinHandOver and MaxHandOver bound the time before the end of its job at which a
	// server ends, whether its successor is there or not: a twentieth of the time.
	MinHandOver = 10 * time.Second
	// MaxHandOver is the upper bound.
	MaxHandOver = 5 * time.Minute
)

// successorAt is when a job with so much time left submits its successor.
func successorAt(left time.Duration) time.Duration { return left / 2 }

// handOverAt is when such a job ends.
func handOverAt(left time.Duration) time.Duration {
	return left - min(max(left/20, MinHandOver), MaxHandOver, left/4)
}

// ErrHandedOver is why the loop of a server ends whose run goes on in another one.
var ErrHandedOver = errors.New("the run goes on in another server")

// LaunchName names the batch job; empty: the server is none.
func (j *Job) LaunchName() string {
	if j == nil {
		return ""
	}
	return j.Launch
}

// JobsConfig is what Jobs have of the server.
type JobsConfig struct {
	Folders folder.Layout
	Sched   *sched.Scheduler
	Log     *slog.Logger
	Tell    func(text string) // a person
}

// Jobs are those of a batch system that are servers of the state: the one before, if it did not end in
// order, and the one that is to follow. One goroutine calls their methods; a nil one has none.
type Jobs struct {
	config      JobsConfig
	job         *Job // nil: this server is none
	term        *term.Term
	servers     *batch.Roster // nil until one of them matters
	predecessor string
	successor   string
	begun       bool
	submitted   bool
}

// NewJobs has a server that was before be followed by this one, with its term.
func NewJobs(job *Job, t *term.Term, before term.Holder, config JobsConfig) *Jobs {
	j := &Jobs{config: config, job: job, term: t}
	if job != nil && before.Lives() && before.Site == job.Site && before.Launch != job.Launch {
		j.predecessor = before.Launch
	}
	return j
}

// Step does what is to be done when the server has run for so long. The error is ErrHandedOver when it
// is to end.
func (j *Jobs) Step(age time.Duration) error {
	if !j.begun && j.predecessor != "" {
		if err := j.withdrawPredecessor(); err != nil {
			j.config.Log.Warn("the job of the server before is not withdrawn", "launch", j.predecessor, "error", err)
		}
	}
	j.begun = true
	var left time.Duration
	if j.job != nil {
		left = j.job.Left
	}
	switch {
	case j.term.Asked():
		return ErrHandedOver
	case left == 0:
	case !j.submitted && age >= successorAt(left):
		j.submitted = true
		if err := j.submitSuccessor(); err != nil {
			j.config.Tell(fmt.Sprintf("no further job for the server can be submitted: %v; "+
				"when the time of this one is over, run it again to go on", err))
		}
	case age >= handOverAt(left):
		return ErrHandedOver
	}
	return nil
}

// Leave leaves them to the server that goes on.
func (j *Jobs) Leave() {
	if j != nil && j.servers != nil {
		_ = j.servers.Leave()
	}
}

// submitSuccessor has the batch system start the next server. The launch is durable
// before.
func (j *Jobs) submitSuccessor() error {
	job := j.job
	pending, fresh, err := term.Announce(j.config.Folders.State, term.Pending{
		State: j.config.Folders.ID, Launch: term.NewLaunch(), Site: job.Site,
	})
	if err != nil {
		return err
	}
	if !fresh && pending.Site != job.Site {
		return fmt.Errorf("the job %s of the site %s is to be the next server", pending.Launch, pending.Site)
	}
	if err := j.term.Change(func(h *term.Holder) { h.Successor = pending.Launch }); err != nil {
		return err
	}
	servers, err := j.roster()
	if err != nil {
		return err
	}
	j.successor = pending.Launch
	servers.Start(pending.Launch)
	return nil
}

// withdrawPredecessor ends the job of a server that did not end in order: it may be frozen, or
// the batch system may have lost its end.
func (j *Jobs) withdrawPredecessor() error {
	servers, err := j.roster()
	if err == nil {
		_, err = servers.Adopt(context.Background(), []string{j.predecessor})
		servers.Withdraw(j.predecessor)
	}
	return err
}

// roster are the jobs of a batch system that are servers of this state. Only Step calls it.
func (j *Jobs) roster() (*batch.Roster, error) {
	if j.servers != nil {
		return j.servers, nil
	}
	job := j.job
	system, err := job.System(j.config.Folders)
	if err != nil {
		return nil, err
	}
	j.servers = batch.NewRoster(batch.RosterConfig{
		Site: job.Site, Job: "server", System: system, Every: job.Poll, Sched: j.config.Sched, Log: j.config.Log,
		Elsewhere: func(string) bool { return true },
		Ended:     func(batch.End) {},
		Tell:      j.config.Tell,
	})
	return j.servers, nil
}

// Withdraw is for a run that has ended: no job is to be its server any more.
func (j *Jobs) Withdraw() {
	if j == nil || j.servers == nil {
		return
	}
	j.servers.Withdraw(j.successor)
	err := j.servers.Close()
	if j.successor != "" {
		err = errors.Join(err, term.Forget(j.config.Folders.State, j.config.Folders.ID, j.successor))
	}
	if err != nil {
		j.config.Log.Warn("jobs that are servers could not be withdrawn", "next", j.successor, "before", j.predecessor,
			"error", err)
	}
}
