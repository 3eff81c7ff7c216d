//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/batch"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/provision"
	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/serverjob"
	"fairway/internal/server/term"
	"fairway/internal/site"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Where the server runs, as --server says it.
const (
	serverHere = "here"
	serverSite = "site"
)

func (o *runOptions) checkServer() error {
	switch {
	case o.server != serverSite:
		return nil
	case len(o.pilots.Sites) == 0:
		return console.Fail(console.ExitUsage, "add --site NAME",
			"--server site has the server run as a job of a site, and there is no "+
				"--site")
	case slices.Contains(o.pilots.Sites, server.LocalSite):
		return console.Fail(console.ExitUsage, "leave --site local out",
			"with --server site, this machine takes no part in the run")
	case o.dryRun || o.follow:
		return console.Fail(console.ExitUsage, "", "--server is for a run that begins, not for --dry-run or --follow")
	}
	return nil
}

// runAsJob has the server run as a job of a site, and watches it as if it ran here.
func (c *commands) runAsJob(ctx context.Context, o *runOptions) error {
	config, err := c.serverConfig(ctx, o) // what is wrong is told before anything waits in a queue
	if err != nil {
		return err
	}
	s, err := provision.ServerSite(&o.pilots, &config)
	if err != nil {
		return console.OfSites(err)
	}
	jobs, err := serverjob.Announce(s, o.config.Folder)
	if other, ok := errors.AsType[*serverjob.OtherSiteError](err); ok {
		return console.Fail(console.ExitRunning,
			fmt.Sprintf("wait for it with `--site %s --server site`, or cancel it with `fairway stop`", other.Site),
			"a job of the site %s is to be the server of the workflow in %s", other.Site, console.FolderText(o.config.Folder))
	}
	if err != nil {
		return o.opened(err)
	}
	w := &serverWatch{commands: c, Watch: jobs, site: s, detach: o.detach}
	defer w.Close()
	return w.run(ctx)
}

// followNext watches the servers that follow one that went away, for as long as each comes
// soon, unless the run is over.
func (c *commands) followNext(ctx context.Context, dir string, gone error) (*wire.ProgressReport, error) {
	for until := time.Now().Add(console.EndingTime); time.Now().Before(until); {
		if err := sched.Default().Sleep(ctx, serverjob.Pause); err != nil {
			return nil, err
		}
		connection, err := api.Connect(ctx, dir)
		if err != nil {
			continue
		}
		if !connection.Live { // records say how the run ended, if it did
			report, err := console.Over(ctx, connection)
			connection.Close()
			if err == nil && report != nil {
				return report, nil
			}
			continue
		}
		report, err := c.Watch(ctx, connection)
		connection.Close()
		if err == nil {
			return report, nil
		}
		gone, until = err, time.Now().Add(console.EndingTime)
	}
	return nil, gone
}

type serverWatch struct {
	*commands
	*serverjob.Watch
	site  *site.Site
	asked atomic.Int32 // how often a person pressed Ctrl-C
	left  atomic.Int32 // the signal that ends the watching, and not the run

	detach  bool // it waits for nothing but that there is a job
	reached bool // the server was there when it was looked for last, whatever the batch system shows

	mu         sync.Mutex // guards connection
	connection *listen.Connection
}

// run watches the servers of the run, one after the other, until the run has ended. With
// detach it waits only until the batch system has taken the job, as it says or as the server shows.
func (w *serverWatch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer console.Signalled(func(s os.Signal) { w.signalled(ctx, s, cancel) })()
	told := ""
	for {
		report, err := w.watchOnce(ctx)
		if report != nil {
			return w.concluded(ctx, report)
		}
		if err != nil {
			return err
		}
		if end, ok := w.Ended(); ok {
			if over, err := w.jobEnded(ctx, end); over {
				return err
			}
		}
		if why := w.Waiting(); why != told && why != "" {
			w.Announce("fairway: " + why)
			told = why
		}
		if w.detach && (w.reached || told != "") {
			return w.detached()
		}
		if sched.Default().Sleep(ctx, serverjob.Pause) != nil {
			return w.interrupted()
		}
		w.FindSuccessor()
		if w.FellSilent() {
			return w.silent()
		}
	}
}

// watchOnce watches a server, if there is one, and returns its report if it says that the run has
// ended. One that goes away is followed by another, or was killed.
func (w *serverWatch) watchOnce(ctx context.Context) (*wire.ProgressReport, error) {
	w.reached = false
	if lives, err := w.Lives(); !lives {
		return nil, err
	}
	connection := console.RunningIn(ctx, w.Layout().Workflow)
	if connection == nil {
		return nil, nil
	}
	defer connection.Close()
	if w.reached = true; w.detach {
		return nil, nil
	}
	w.use(connection)
	defer w.use(nil)
	report, _ := w.commands.Watch(ctx, connection)
	if report.GetEnded() {
		return report, nil
	}
	return nil, nil
}

func (w *serverWatch) use(connection *listen.Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connection = connection
	if connection != nil && w.asked.Load() > 0 {
		go w.stop(connection)
	}
}

// signalled is told of signals. Ctrl-C ends the run, first in order and then at once, or
// takes the job of the server back that waits. Other signals end the watching: where login
// nodes end processes, the run is to go on.
func (w *serverWatch) signalled(ctx context.Context, s os.Signal, cancel func()) {
	if s != os.Interrupt {
		w.left.Store(int32(signalCode(s)))
		cancel()
		return
	}
	w.mu.Lock()
	connection := w.connection
	w.mu.Unlock()
	if w.asked.Add(1) > 2 || ctx.Err() != nil {
		return
	}
	if connection == nil {
		cancel()
		return
	}
	if w.asked.Load() == 1 {
		w.Announce("fairway: ending when the running attempts have ended and stored their outputs; " +
			"Ctrl-C again ends them now")
	} else {
		w.Announce("fairway: ending now")
	}
	w.stop(connection)
}

func (w *serverWatch) stop(connection *listen.Connection) {
	ctx, cancel := context.WithTimeout(context.Background(), console.EndingTime)
	defer cancel()
	if _, err := connection.Stop(ctx, &wire.StopRequest{Drain: w.asked.Load() < 2}); err != nil {
		w.Announce(fmt.Sprintf("fairway: the server could not be told: %v", err))
	}
}

// interrupted is for a signal that came while no server was there, or that ends the
// watching only.
func (w *serverWatch) interrupted() error {
	if code := w.left.Load(); code != 0 {
		if w.reached || w.Taken() {
			fmt.Fprintf(w.Err, "fairway: the run goes on as a job of %s; watch it with `fairway run --follow`, end it with "+
				"`fairway stop`\n", w.site.Name)
		} else {
			fmt.Fprintf(w.Err, "fairway: %s has not shown the job of the server yet; run it again to go on, or cancel it with "+
				"`fairway stop`\n", w.site.Name)
		}
		return console.Quietly(int(code))
	}
	if err := withdrawal(w.Withdraw()); err != nil {
		return err
	}
	return console.Quietly(console.ExitInterrupted)
}

// withdrawal says what to do where a job could not be taken back.
func withdrawal(err error) error {
	if kept, ok := errors.AsType[*serverjob.WithdrawError](err); ok {
		return console.Fail(console.ExitFailed, fmt.Sprintf("if the site %s has no such job, remove %s", kept.Site,
			screen.DisplayPath(kept.File)),
			"%w", err)
	}
	return err
}

type detachedJob struct {
	Launch string `json:"launch"`
	Site   string `json:"site"`
	Log    string `json:"log"`
}

func (w *serverWatch) detached() error {
	if w.JSON {
		w.PrintJSON(detachedJob{w.Launch(), w.site.Name, w.Log()})
		return nil
	}
	fmt.Fprintf(w.Out, "The run goes on as a job of %s. Watch it with `fairway run --follow`, end it with `fairway "+
		"stop`.\nIt prints to %s\n", w.site.Name, w.Log())
	return nil
}

// jobEnded is for a job that the batch system has no more. It reports whether the run is
// over: unless another job is the server now, or is to be.
func (w *serverWatch) jobEnded(ctx context.Context, end batch.End) (over bool, err error) {
	over, ended, err := w.Over(end)
	if !over || err != nil {
		return over, err
	}
	if ended { // while nobody watched
		connection, err := api.Connect(ctx, w.Layout().Workflow)
		if err == nil {
			defer connection.Close()
			report, err := w.commands.Watch(ctx, connection)
			if err == nil && report.GetEnded() {
				return true, w.concluded(ctx, report)
			}
		}
	}
	return true, console.Fail(console.ExitFailed, "pilots go on for the lease; run it again to go on",
		"the job of the server at %s ended before the run did (%s)%s", w.site.Name, end.Reason, withLines(w.Said()))
}

// silent is for a server that fell silent. Its job may be suspended, so it is left alone: the
// next server cancels it.
func (w *serverWatch) silent() error {
	return console.Fail(console.ExitFailed,
		"run it again to go on, which cancels that job; if it is only suspended, `fairway run "+
			"--follow` watches it when it moves again",
		"the job of the server at %s has said nothing for %v, though the batch system has it%s",
		w.site.Name, serverjob.SilentTime, withLines(w.Said()))
}

func (w *serverWatch) concluded(ctx context.Context, report *wire.ProgressReport) error {
	for until := time.Now().Add(console.EndingTime); time.Now().Before(until); {
		if lives, _ := w.Lives(); !lives {
			break
		}
		if sched.Default().Sleep(ctx, serverjob.Pause) != nil {
			break
		}
	}
	err := w.conclude(ctx, w.Layout().Workflow, report)
	if w.asked.Load() > 0 && !report.Succeeded {
		return console.Quietly(console.ExitInterrupted)
	}
	return err
}

// stopPending takes the job of a server back that waits in a queue. It reports whether
// there was one.
func (c *commands) stopPending() (bool, error) {
	dir, err := c.FolderWithState()
	if err != nil {
		return false, err
	}
	l, err := folder.Of(dir)
	if err != nil || l.ID == "" {
		return false, err
	}
	pending, err := term.PendingOf(l.State, l.ID)
	if err != nil || pending.Launch == "" {
		return false, err
	}
	s, err := console.FindSite(dir, pending.Site)
	if err != nil {
		return false, err
	}
	return true, withdrawal(serverjob.Withdraw(s, l, pending.Launch))
}

// refuseFarServer keeps a server that may run on another machine, or waits in a queue, from
// losing its state.
func refuseFarServer(dir string) error {
	l, err := folder.Of(dir)
	if err != nil || l.ID == "" {
		return nil // what is damaged is cleaned all the same
	}
	last, err := term.Last(l.State, l.ID)
	switch pending, _ := term.PendingOf(l.State, l.ID); {
	case err != nil:
		return err
	case pending.Launch != "":
		return console.Fail(console.ExitRunning, "cancel it with `fairway stop`",
			"a job of the site %s is to be the server of the "+
				"workflow in %s", pending.Site, console.FolderText(dir))
	case last.Elsewhere():
		return console.Fail(console.ExitRunning, console.InsteadOfFar,
			"the server of the run was last on %s, and may still run", last.Host)
	}
	return nil
}
