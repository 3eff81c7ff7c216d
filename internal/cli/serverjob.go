package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/batch"
	"fairway/internal/batch/allocation"
	"fairway/internal/bootstrap"
	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/site"
	"fairway/internal/wire"
	"fairway/sched"
)

// Where the server runs, as --server says it.
const (
	serverHere = "here"
	serverSite = "site"
)

// serverVariable tells a process that it is the batch job of a launch, and is to be the
// server.
const serverVariable = "FAIRWAY_SERVER"

func isServerJob() bool { return os.Getenv(serverVariable) != "" }

// checkServer refuses what means nothing where the server is a batch job.
func (o *runOptions) checkServer() error {
	switch {
	case o.server != serverSite:
		return nil
	case len(o.sites) == 0:
		return fail(exitUsage, "add --site NAME", "--server site has the server run as a job of a site, and there is no --site")
	case slices.Contains(o.sites, server.LocalSite):
		return fail(exitUsage, "leave --site local out", "with --server site, this machine takes no part in the run")
	case o.dryRun || o.follow:
		return fail(exitUsage, "", "--server is for a run that begins, not for --dry-run or --follow")
	}
	return nil
}

// siteOfServer is the site whose job the server is to be.
func siteOfServer(o *runOptions) (*site.Site, error) {
	s, err := findSite(o.folder, o.sites[0])
	if err != nil {
		return nil, err
	}
	if err := s.TakesServers(); err != nil {
		return nil, fail(exitUsage, "name another site first, or leave --server out", "--server site: %w", err)
	}
	return s, nil
}

// serverSystem is the batch system that takes jobs which are servers. They begin with the
// arguments and in the folder of this process.
func serverSystem(s *site.Site, l folder.Layout) (site.System, error) {
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
	return s.Open(site.Place{
		State: l.ID, Folder: servers, Server: true,
		Start: func(launch string) (bootstrap.Start, error) {
			start := bootstrap.InPlace(bootstrap.Path(programs, program.Hash), serverLog(l, launch), os.Args[1:]...)
			start.Before += fmt.Sprintf("cd %s || exit\nexport %s=%s\n", bootstrap.Quote(here), serverVariable, launch)
			if config := os.Getenv("XDG_CONFIG_HOME"); config != "" {
				start.Before += "export XDG_CONFIG_HOME=" + bootstrap.Quote(config) + "\n"
			}
			return start, nil
		},
	})
}

// serverLog is what a server that is a batch job prints.
func serverLog(l folder.Layout, launch string) string {
	return filepath.Join(l.State, folder.ServersName, launch+".log")
}

// jobOf is the batch job that this process is.
func jobOf(ctx context.Context, o *runOptions) (*server.Job, error) {
	s, err := siteOfServer(o)
	if err != nil {
		return nil, err
	}
	left := s.Request.Time
	if a, err := allocation.Find(ctx); err == nil {
		if told, ends := a.Left(); ends {
			left = told
		}
	}
	return &server.Job{
		Launch: os.Getenv(serverVariable), Site: s.Name, Left: left, Poll: s.Poll,
		System: func(l folder.Layout) (batch.System, error) { return serverSystem(s, l) },
	}, nil
}

// runAsJob has the server run as a job of a site, and watches it as if it ran here.
func (c *console) runAsJob(ctx context.Context, o *runOptions) error {
	if _, err := c.serverConfig(ctx, o); err != nil { // what is wrong is told before anything waits in a queue
		return err
	}
	s, err := siteOfServer(o)
	if err != nil {
		return err
	}
	w, err := c.announceServer(s, o)
	if err != nil {
		return err
	}
	defer w.close()
	return w.run(ctx, o.detach)
}

// announceServer names the job of the server, unless one waits already, and begins to have
// it started.
func (c *console) announceServer(s *site.Site, o *runOptions) (*serverWatch, error) {
	l, err := stateOf(o.folder)
	if err != nil {
		return nil, err
	}
	w := &serverWatch{console: c, site: s, layout: l, ended: make(chan batch.End, 16), silentTime: silentServer}
	if err := w.open(); err != nil {
		return nil, err
	}
	pending, fresh, err := term.Announce(l.State, term.Pending{State: l.ID, Launch: term.NewLaunch(), Site: s.Name})
	switch {
	case err != nil:
	case fresh:
		w.roster.Start(pending.Launch)
	case pending.Site != s.Name:
		err = fail(exitRunning, fmt.Sprintf("wait for it with `--site %s --server site`, or cancel it with `fairway stop`", pending.Site),
			"a job of the site %s is to be the server of the workflow in %s", pending.Site, folderText(o.folder))
	default:
		_, err = w.roster.Adopt(context.Background(), []string{pending.Launch})
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.launch = pending.Launch
	return w, nil
}

// stateOf makes a state where there is none. It holds the lock no longer than for that: a
// job that is to be the server may begin at any time.
func stateOf(dir string) (folder.Layout, error) {
	l, err := folder.Of(dir)
	if err == nil && l.ID != "" {
		err = folder.CheckFree(dir)
	} else if err == nil {
		var lock *folder.Lock
		if lock, l, err = folder.Claim(dir); err == nil {
			err = lock.Release()
		}
	}
	if running, ok := errors.AsType[*folder.RunningError](err); ok {
		return l, alreadyRunning(running.Folder)
	}
	return l, err
}

// lockTime is how long the job of a server waits for others that have the lock for a
// moment, such as a command that cancels a job while nothing runs.
const lockTime = 10 * time.Second

// followNext watches the servers that follow one that went away, for as long as each comes
// soon.
func (c *console) followNext(ctx context.Context, dir string, gone error) (*wire.ProgressReport, error) {
	for until := time.Now().Add(endingTime); time.Now().Before(until); {
		if err := sched.Default().Sleep(ctx, serverPause); err != nil {
			return nil, err
		}
		connection := runningIn(ctx, dir)
		if connection == nil {
			continue
		}
		report, err := c.watch(ctx, connection)
		connection.Close()
		if err == nil {
			return report, nil
		}
		gone, until = err, time.Now().Add(endingTime)
	}
	return nil, gone
}

// openServer opens the server of this process.
func openServer(ctx context.Context, config server.Config) (*server.Server, error) {
	for until := time.Now().Add(lockTime); ; {
		s, err := server.Open(ctx, config)
		_, locked := errors.AsType[*folder.RunningError](err)
		_, held := errors.AsType[*term.HeldError](err)
		if !isServerJob() || !locked && !held || time.Now().After(until) {
			return s, err
		}
		if err := sched.Default().Sleep(ctx, serverPause); err != nil {
			return nil, err
		}
	}
}

// serverWatch waits for a server that is a batch job, and watches it.
type serverWatch struct {
	*console
	site   *site.Site
	layout folder.Layout
	roster *batch.Roster
	launch string         // of the job that is, or is to be, the server
	ended  chan batch.End // of jobs that the batch system has no more
	asked  atomic.Int32   // how often a person pressed Ctrl-C
	left   atomic.Int32   // the signal that ends the watching, and not the run

	// heard is the last term as it was at heardSince, and has been at each look since then; looked
	// is when the last of these was. Only run reads and writes them.
	heard              term.Holder
	heardSince, looked time.Time
	silentTime         time.Duration // for so long a server may say nothing: silentServer

	mu         sync.Mutex // guards connection
	connection *api.Connection
}

func (w *serverWatch) open() error {
	system, err := serverSystem(w.site, w.layout)
	if err != nil {
		return err
	}
	w.roster = batch.NewRoster(batch.RosterConfig{
		Site: w.site.Name, Job: "server", System: system, Every: w.site.Poll,
		Elsewhere: func(string) bool { return true }, // other servers are no pilots
		Ended:     func(end batch.End) { w.ended <- end },
	})
	return nil
}

func (w *serverWatch) close() { _ = w.roster.Leave() }

// serverPause is how often one that waits for a server looks whether it is there.
const serverPause = 200 * time.Millisecond

// silentServer is how long a server says nothing that is taken for dead, whatever the batch
// system says of its job: as long as others wait before they follow it, and as long again for
// the batch system to say so itself, which may start the job once more.
const silentServer = 2 * term.SilentTime

// run watches the servers of the run, one after the other, until the run has ended. With
// detach it waits only until the batch system has taken the job.
func (w *serverWatch) run(ctx context.Context, detach bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer signalled(func(s os.Signal) { w.signalled(ctx, s, cancel) })()
	told := ""
	for {
		report, err := w.watchOnce(ctx)
		if report != nil {
			return w.concluded(ctx, report)
		}
		if err != nil {
			return err
		}
		select {
		case end := <-w.ended:
			if over, err := w.jobEnded(ctx, end); over {
				return err
			}
		default:
		}
		if why := w.waiting(); why != told && why != "" {
			w.announce("fairway: " + why)
			told = why
		}
		if detach && told != "" {
			return w.detached()
		}
		if sched.Default().Sleep(ctx, serverPause) != nil {
			return w.interrupted()
		}
		w.findSuccessor()
		if w.fellSilent() {
			return w.silent()
		}
	}
}

// watchOnce watches a server, if there is one, and returns its report if it says that the run has
// ended. One that goes away is followed by another, or was killed.
func (w *serverWatch) watchOnce(ctx context.Context) (*wire.ProgressReport, error) {
	holder, err := term.Last(w.layout.State, w.layout.ID)
	if err != nil || !holder.Lives() {
		return nil, err
	}
	connection := runningIn(ctx, w.layout.Workflow)
	if connection == nil {
		return nil, nil
	}
	defer connection.Close()
	w.use(connection)
	defer w.use(nil)
	report, _ := w.watch(ctx, connection)
	if report.GetEnded() {
		return report, nil
	}
	return nil, nil
}

func (w *serverWatch) use(connection *api.Connection) {
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
		w.announce("fairway: ending when the running attempts have ended and stored their outputs; Ctrl-C again ends them now")
	} else {
		w.announce("fairway: ending now")
	}
	w.stop(connection)
}

func (w *serverWatch) stop(connection *api.Connection) {
	ctx, cancel := context.WithTimeout(context.Background(), endingTime)
	defer cancel()
	if _, err := connection.Stop(ctx, &wire.StopRequest{Drain: w.asked.Load() < 2}); err != nil {
		w.announce(fmt.Sprintf("fairway: the server could not be told: %v", err))
	}
}

// interrupted is for a signal that came while no server was there, or that ends the
// watching only.
func (w *serverWatch) interrupted() error {
	if code := w.left.Load(); code != 0 {
		if _, ok := w.roster.Status(w.launch); ok {
			fmt.Fprintf(w.err, "fairway: the run goes on as a job of %s; watch it with `fairway run --follow`, end it with `fairway stop`\n", w.site.Name)
		} else {
			fmt.Fprintf(w.err, "fairway: %s has not shown the job of the server yet; run it again to go on, or cancel it with `fairway stop`\n", w.site.Name)
		}
		return quietly(int(code))
	}
	if err := withdrawServer(w.site, w.layout, w.launch); err != nil {
		return err
	}
	return quietly(exitInterrupted)
}

func withdrawServer(s *site.Site, l folder.Layout, launch string) error {
	system, err := serverSystem(s, l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), batch.CallTime)
	defer cancel()
	if err := system.Withdraw(ctx, launch); err != nil {
		return fail(exitFailed, fmt.Sprintf("if the site %s has no such job, remove %s", s.Name, displayPath(term.PendingFile(l.State))),
			"the job of the server could not be cancelled: %w", err)
	}
	return term.Forget(l.State, l.ID, launch)
}

// waiting says why the server is not there yet.
func (w *serverWatch) waiting() string {
	status, ok := w.roster.Status(w.launch)
	switch {
	case !ok || status.State == batch.Gone:
		return ""
	case status.State == batch.Queued:
		return fmt.Sprintf("the server waits as a job of %s: %s", w.site.Name, status.Reason)
	}
	return fmt.Sprintf("the server is a job of %s", w.site.Name)
}

func (w *serverWatch) detached() error {
	log := serverLog(w.layout, w.launch)
	if w.json {
		w.printJSON(struct {
			Launch string `json:"launch"`
			Site   string `json:"site"`
			Log    string `json:"log"`
		}{w.launch, w.site.Name, log})
		return nil
	}
	fmt.Fprintf(w.out, "The run goes on as a job of %s. Watch it with `fairway run --follow`, end it with `fairway stop`.\nIt prints to %s\n", w.site.Name, log)
	return nil
}

// findSuccessor turns to the job that is to be the next server, or is it already.
func (w *serverWatch) findSuccessor() {
	next := ""
	if pending, err := term.PendingOf(w.layout.State, w.layout.ID); err == nil {
		next = pending.Launch
	}
	if holder, err := term.Last(w.layout.State, w.layout.ID); err == nil && holder.Lives() && next == "" {
		next = holder.Launch // it may be dead, and counts only where none is to follow
	}
	if next != "" && next != w.launch {
		w.launch = next
		_, _ = w.roster.Adopt(context.Background(), []string{next}) // fails for Notifiers only
	}
}

// jobEnded is for a job that the batch system has no more. It reports whether the run is
// over: unless another job is the server now, or is to be.
func (w *serverWatch) jobEnded(ctx context.Context, end batch.End) (over bool, err error) {
	w.findSuccessor()
	if end.Launch != w.launch {
		return false, nil
	}
	if err := term.Forget(w.layout.State, w.layout.ID, end.Launch); err != nil {
		return true, err
	}
	if w.findSuccessor(); end.Launch != w.launch {
		return false, nil
	}
	holder, err := term.Last(w.layout.State, w.layout.ID)
	if err != nil {
		return true, err
	}
	if holder.Ended && holder.Launch == end.Launch { // the run ended while nobody watched
		connection, err := api.Connect(ctx, w.layout.Workflow)
		if err == nil {
			defer connection.Close()
			report, err := w.watch(ctx, connection)
			if err == nil && report.GetEnded() {
				return true, w.concluded(ctx, report)
			}
		}
	}
	said, _ := os.ReadFile(serverLog(w.layout, end.Launch))
	return true, fail(exitFailed, "pilots go on for the lease; run it again to go on",
		"the job of the server at %s ended before the run did (%s)%s", w.site.Name, end.Reason, withLines(lastPart(said)))
}

// fellSilent reports whether the job that this process waits for was the server, and seems dead
// though the batch system has it: a controller that was restarted may have lost its end. What
// this process did not see, because it or a file system stood still, is no silence.
func (w *serverWatch) fellSilent() bool {
	at, last := time.Now(), w.looked
	now, err := term.Last(w.layout.State, w.layout.ID)
	w.looked = time.Now()
	status, _ := w.roster.Status(w.launch)
	if err != nil || now.Number != w.heard.Number || now.Beat != w.heard.Beat || status.State == batch.Queued || w.looked.Sub(last) > term.BeatTime {
		w.heard, w.heardSince = now, at
	}
	return now.Lives() && now.Launch == w.launch && at.Sub(w.heardSince) > w.silentTime
}

// silent is for a server that fell silent. Its job may be suspended, so it is left alone: the
// next server cancels it.
func (w *serverWatch) silent() error {
	said, _ := os.ReadFile(serverLog(w.layout, w.launch))
	return fail(exitFailed, "run it again to go on, which cancels that job; if it is only suspended, `fairway run --follow` watches it when it moves again",
		"the job of the server at %s has said nothing for %v, though the batch system has it%s",
		w.site.Name, w.silentTime, withLines(lastPart(said)))
}

// lastPart is as much of what a server said as a person needs.
func lastPart(said []byte) []byte {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return []byte(strings.Join(lines[max(0, len(lines)-20):], "\n"))
}

// concluded tells how a run ended, when its server has ended all that it had started.
func (w *serverWatch) concluded(ctx context.Context, report *wire.ProgressReport) error {
	for until := time.Now().Add(endingTime); time.Now().Before(until); {
		if holder, err := term.Last(w.layout.State, w.layout.ID); err != nil || !holder.Lives() {
			break
		}
		if sched.Default().Sleep(ctx, serverPause) != nil {
			break
		}
	}
	err := w.conclude(ctx, w.layout.Workflow, report)
	if w.asked.Load() > 0 && !report.Succeeded {
		return quietly(exitInterrupted)
	}
	return err
}

// stopPending takes the job of a server back that waits in a queue. It reports whether
// there was one.
func (c *console) stopPending() (bool, error) {
	dir, err := c.folderWithState()
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
	s, err := findSite(dir, pending.Site)
	if err != nil {
		return false, err
	}
	return true, withdrawServer(s, l, pending.Launch)
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
		return fail(exitRunning, "cancel it with `fairway stop`", "a job of the site %s is to be the server of the workflow in %s", pending.Site, folderText(dir))
	case last.Elsewhere():
		return fail(exitRunning, insteadOfFar,
			"the server of the run was last on %s, and may still run", last.Host)
	}
	return nil
}
