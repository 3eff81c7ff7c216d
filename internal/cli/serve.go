//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"connectrpc.com/connect"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/cli/survey"
	"fairway/internal/flow/workflow"
	"fairway/internal/provision"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/server/serverjob"
	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// serve runs the workflow in this process, and watches it through the socket
// as any other process would.
func (c *commands) serve(ctx context.Context, o *runOptions) error {
	report, first, err := c.serveRun(ctx, o, nil)
	if err != nil || report == nil {
		return err
	}
	err = c.conclude(ctx, o.config.Folder, report)
	if first != nil && !report.Succeeded {
		return console.Quietly(signalCode(first))
	}
	return err
}

// serveRun is serve without what is printed at the end. It returns how the run ended, nil if it
// goes on elsewhere, and the signal that asked for its end, if any. begun is called, beside
// the server, when it can be asked; an error of it ends the run.
func (c *commands) serveRun(
	ctx context.Context, o *runOptions, begun func(context.Context) error,
) (*wire.ProgressReport, os.Signal, error) {
	config, err := c.serverConfig(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := c.openWeb(o, &config); err != nil {
		return nil, nil, err
	}
	s, err := serverjob.Open(ctx, config)
	if held, ok := errors.AsType[*term.HeldError](err); ok {
		return nil, nil, console.Fail(console.ExitRunning, "watch it with --follow, or end it with `fairway stop`",
			"%w", held)
	}
	if err != nil {
		return nil, nil, o.opened(err)
	}
	if isDetached() {
		if err := leaveTerminal(o.config.Folder); err != nil {
			return nil, nil, fmt.Errorf("going on in the background: %w", err)
		}
	}
	refused := make(chan error, 1)
	if begun == nil {
		refused <- nil
	} else {
		go func() {
			err := begun(ctx)
			if err != nil {
				s.Stop(false)
			}
			refused <- err
		}()
	}
	defer o.abandonWith(s)()
	sched.Default().React() // beside jobs that compute
	watched := c.watchInBackground(ctx, o.config.Folder)
	interrupted := c.stopOnSignal(s, o.shared)
	outcome, err := s.Run(ctx)
	first := interrupted()
	seen := <-watched
	switch begunErr := <-refused; {
	case errors.Is(err, term.ErrFollowed):
		return nil, first, err
	case err != nil:
		return nil, first, stateLost(err)
	case outcome.HandedOver:
		c.Announce("fairway: this server ends; the run goes on in the next job of the server, or with `fairway run` where " +
			"there is none")
		return nil, first, nil
	case begunErr != nil && first == nil:
		return nil, nil, begunErr
	}
	report, err := s.Report(ctx)
	if err != nil {
		return nil, first, fmt.Errorf("asking how the run ended: %w", err)
	}
	c.tellRest(screen.ToldOf(seen), report)
	return report, first, nil
}

// stateLost tells what can be done when the state could not be kept.
func stateLost(err error) error {
	if errors.Is(err, store.ErrCorrupt) { // which says itself what to do
		return fmt.Errorf("the run ended because its state could not be kept: %w", err)
	}
	return fmt.Errorf("the run ended because its state could not be kept (%w); run it again to go on", err)
}

// opened says what to do where a server cannot be opened.
func (o *runOptions) opened(err error) error {
	if running, ok := errors.AsType[*folder.RunningError](err); ok && o.config.Lasting {
		return console.Fail(console.ExitRunning, "end it with `fairway stop --server "+
			screen.DisplayPath(o.config.Folder)+"`", "another process serves %s", console.FolderText(running.Folder))
	} else if ok {
		return alreadyRunning(running.Folder)
	}
	if kind, ok := errors.AsType[*folder.KindError](err); ok {
		flag := "--dir"
		if o.config.Lasting {
			flag = "--state"
		}
		return console.Fail(console.ExitUsage, "choose another folder with "+flag, "%w", kind)
	}
	if _, ok := errors.AsType[*server.TargetError](err); ok {
		return &console.Failure{Code: console.ExitNotFound, Err: err}
	}
	if _, ok := errors.AsType[*server.OtherWorkflowError](err); ok {
		return console.Fail(console.ExitUsage,
			"give this one a folder of its own with --dir, or remove that one with `fairway clean`", "%w",
			err)
	}
	return err
}

// watchInBackground shows progress, and gives the last report that it saw when the run
// has ended: none, where that was before anybody could watch.
func (c *commands) watchInBackground(ctx context.Context, folder string) <-chan *wire.ProgressReport {
	last := make(chan *wire.ProgressReport, 1)
	go func() {
		connection := console.RunningIn(ctx, folder)
		if connection == nil {
			last <- nil
			return
		}
		defer connection.Close()
		// How the run ended is known from the server itself; here an error
		// only means that less was shown.
		report, err := c.Watch(ctx, connection)
		for connect.CodeOf(err) == connect.CodeDeadlineExceeded { // the disk may stand still, say
			report, err = c.Watch(ctx, connection)
		}
		last <- report
	}()
	return last
}

func (c *commands) tellRest(told *screen.Told, report *wire.ProgressReport) {
	if c.JSON {
		return // they are in the report
	}
	for _, news := range told.News(report) {
		fmt.Fprintln(c.Err, news.Text())
	}
}

// stopOnSignal lets the first signal end the run in order and the second at
// once. The returned function ends that, and gives the first signal, if any.
// shared gives up the jobs of this call where the run goes on for others, if there may be such.
func (c *commands) stopOnSignal(s *server.Server, shared func()) (first func() os.Signal) {
	received := make(chan os.Signal, 2)
	stop := console.Signalled(
		func(signal os.Signal) {
			received <- signal
			if shared != nil && s.Yield() > 0 {
				c.Announce("fairway: others add jobs to this run; it ends when they have left; Ctrl-C again ends it now")
				shared()
				return
			}
			s.Stop(true)
			c.Announce("fairway: ending when the running attempts have ended and stored their outputs; Ctrl-C again ends " +
				"them now")
		},
		func(signal os.Signal) {
			received <- signal
			c.Announce("fairway: ending now")
			s.Stop(false)
		},
		func(os.Signal) {},
	)
	return func() os.Signal {
		stop()
		select {
		case signal := <-received:
			return signal
		default:
			return nil
		}
	}
}

func signalCode(signal os.Signal) int {
	switch signal {
	case syscall.SIGTERM:
		return console.ExitTerminated
	case syscall.SIGHUP:
		return console.ExitHungUp
	case syscall.SIGQUIT:
		return console.ExitQuit
	}
	return console.ExitInterrupted
}

func (o *runOptions) workflow() (*workflow.Workflow, error) {
	if o.text != nil {
		return workflow.Parse(o.file, o.text)
	}
	return console.ReadWorkflow(o.file, o.parameters, o.scales)
}

// readWorkflow reads what is run, and looks at its inputs.
func (o *runOptions) readWorkflow(config *server.Config) error {
	work, err := o.workflow()
	if err != nil {
		return err
	}
	if work, err = console.Chosen(work, o.parameters, o.until, o.priority); err != nil {
		return err
	}
	relativeTo := cmp.Or(config.Base, config.Folder)
	if config.Enumerated, err = survey.NewListing(relativeTo); err != nil {
		return err
	}
	config.Workflow = work
	_, err = survey.Inputs(work, o.file, relativeTo, config.Enumerated, false)
	return err
}

func (c *commands) serverConfig(ctx context.Context, o *runOptions) (server.Config, error) {
	config := o.config
	config.Version, config.Log = console.ProgramVersion(), slog.Default()
	config.Dispatch.Placement = taskqueue.Placements[o.placement]
	var err error
	if !config.Lasting {
		err = o.readWorkflow(&config)
	}
	if err == nil {
		err = folder.CheckOurs(config.Folder)
	}
	if err == nil {
		err = console.OfSites(provision.Provide(ctx, &o.pilots, &config))
	}
	return config, err
}
