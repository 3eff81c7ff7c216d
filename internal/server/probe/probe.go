// Package probe tests a site. It submits one pilot that runs no jobs, and hears from it what
// its node has. The pilot comes the way of all pilots of the site, to a server of the probe's
// own; nothing of a run of the workflow is touched, and whatever the probe has made in the
// workflow's folder is removed when it is closed.
package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/bootstrap"
	"fairway/internal/pilot"
	"fairway/internal/pilot/process"
	"fairway/internal/quantity"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/site"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/lib/sched"
)

// Config says what is tested.
type Config struct {
	Site    *site.Site
	Folder  string // of the workflow
	Listen  string // the address at which pilots reach this process, as access.Listen takes it
	Sandbox pilot.SandboxMode
	// Start is how the pilot of a launch is started at the site.
	Start func(at launch.Way, arguments ...string) (bootstrap.Start, error)
}

// Result is what a pilot has told.
type Result struct {
	Found  pilot.Found
	Waited time.Duration // until it came
	// Problems are what keeps the batch system from starting more pilots, as far as it tells.
	Problems []string
}

// Probe is one test of a site, with a folder of its own in that of the workflow.
type Probe struct {
	config      Config
	name        string // of its launch
	dir         string
	settings    *pilot.Config
	system      site.System
	connections *launch.Connections
	endpoint    *listen.Endpoint
	found       chan pilot.Found
	wrong       chan error // what kept the pilot from starting
}

// dirPrefix begins the name of a probe's folder.
const dirPrefix = ".fairway-site-test-"

const (
	connectTime = 30 * time.Second // for which the pilot tries to reach this process
	slowStart   = 5 * time.Second  // for which nobody is told why the pilot is not there
)

// Open has this process listen for a pilot of the site. The caller closes the Probe.
func Open(config Config) (*Probe, error) {
	dir, err := os.MkdirTemp(config.Folder, dirPrefix)
	if err != nil {
		return nil, err
	}
	p := &Probe{config: config, name: config.Site.Name + "-test", dir: dir, found: make(chan pilot.Found, 1),
		wrong: make(chan error, 1)}
	if err = p.serve(); err == nil {
		err = p.openSystem()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Probe) openSystem() (err error) {
	s, own := p.config.Site, strings.TrimPrefix(filepath.Base(p.dir), dirPrefix)
	p.settings = &pilot.Config{
		Memory: s.Request.Memory, Countable: s.Has, Life: s.Request.Time,
		Check: s.Check, Tools: s.Tools, Sandbox: p.config.Sandbox,
		Workflow: p.config.Folder, Lease: connectTime,
	}
	p.settings.InScratch(filepath.Join(s.Scratch, pilot.ScratchPrefix+"test-"+own))
	p.system, err = s.Open(site.Launcher{
		State: own, Folder: p.dir, Environment: process.Handed,
		Start: func(name string) (bootstrap.Start, error) {
			at, err := p.connections.To(name, s.Name, p.settings)
			if err != nil {
				return bootstrap.Start{}, err
			}
			return p.config.Start(at, "--probe")
		},
	})
	return err
}

// Script is what Run submits, for a person: without the token by which the pilot is known.
func (p *Probe) Script() (string, error) {
	_, text, err := p.system.Text(p.name)
	if err != nil {
		return "", err
	}
	at, err := p.connections.To(p.name, p.config.Site.Name, p.settings)
	return strings.ReplaceAll(text, string(at.Connection.Token), "TOKEN"), err
}

// Run submits the pilot, and waits until ctx ends for what it tells. After some time it
// says, each second, why the pilot is not there. It is called once.
func (p *Probe) Run(ctx context.Context, say func(why string)) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	if err := p.system.Submit(ctx, p.name); err != nil {
		return Result{}, err
	}
	roster := batch.NewRoster(batch.RosterConfig{
		Site: p.config.Site.Name, System: p.system, Every: cmp.Or(p.config.Site.Poll, time.Second),
		Ended: func(end batch.End) { cancel(fmt.Errorf("it ended without an answer (%s)", end.Reason)) },
		Never: func(reason string) { cancel(fmt.Errorf("it can never start as it is asked for: %s", reason)) },
	})
	defer roster.Close()
	if _, err := roster.Adopt(ctx, []string{p.name}); err != nil {
		return Result{}, err
	}
	go func() {
		if wrong, err := sched.Receive(ctx, sched.Default(), p.wrong); err == nil {
			cancel(wrong)
		}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case found := <-p.found:
			return Result{found, time.Since(begun), problemsOf(p.system)}, nil
		case <-ctx.Done():
		case <-tick.C:
			if time.Since(begun) > slowStart {
				say(strings.Join(roster.Waiting(nil), "; "))
			}
		}
	}
	if status, ok := roster.Status(p.name); ok && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return Result{}, fmt.Errorf("it is %s (%s) after %s", status.State, status.Reason,
			quantity.Seconds(time.Since(begun).Seconds()))
	}
	return Result{}, context.Cause(ctx)
}

// Said is what the pilot has printed, as far as this machine sees it. Elsewhere is where that
// is on the node, if the node shares nothing with this machine.
func (p *Probe) Said() (text, elsewhere string) {
	if p.config.Site.Shares == site.SharesNothing {
		elsewhere = filepath.Join(p.config.Site.Scratch, "fairway."+p.name+".*", "log")
	}
	said, _ := os.ReadFile(filepath.Join(p.dir, p.name+".log"))
	return string(said), elsewhere
}

// problemsOf are what keeps a batch system from starting more pilots, as far as it tells.
func problemsOf(system batch.System) []string {
	if hosts, ok := system.(interface{ Problems() []string }); ok {
		return hosts.Problems()
	}
	return nil
}

// Close ends what the probe has begun, and removes its folder.
func (p *Probe) Close() {
	if p.endpoint != nil {
		p.endpoint.Close(time.Second)
	}
	_ = os.RemoveAll(p.dir)
}

// foundPath is where the probe of a site tells what it has found.
const foundPath = "/fairway/found"

// maxFound bounds what a probe tells, in bytes.
const maxFound = 1 << 20

func (p *Probe) serve() error {
	authority, err := access.OpenAuthority(filepath.Join(p.dir, "authority"), filepath.Base(p.dir))
	if err != nil {
		return err
	}
	listener, addresses, err := access.Listen(p.config.Listen, 0, authority)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	routes := map[string]http.Handler{}
	if p.connections, err = launch.OpenConnections(p.dir, authority, addresses, log); err == nil {
		routes[served.Prefix], err = marked(p.config.Folder, filepath.Base(p.dir), authority.FileKey())
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	routes[bootstrap.Prefix] = bootstrap.Handler(p.connections.Programs(),
		func(text string) { offer(p.wrong, errors.New(text)) })
	routes[foundPath] = access.Timed(http.HandlerFunc(p.take))
	p.endpoint = listen.NewEndpoint(listener, access.Handler(p.connections.Tokens, routes), log)
	go p.endpoint.Serve()
	return nil
}

// marked lets a pilot find out whether it shares a folder with this machine, by a mark
// in a folder within.
func marked(folder, within string, key *served.Key) (http.Handler, error) {
	roots := storage.Roots{Folder: folder}
	mark, err := served.NewMark(roots, storage.FolderScheme+":", within)
	if err != nil {
		return nil, err
	}
	return served.NewHandler(served.Config{
		Element: storage.Local(roots), Authority: key, Marks: []served.Mark{mark},
		Launch: func(ctx context.Context) (string, bool) {
			caller, ok := access.CallerOf(ctx)
			return caller.Launch, ok
		},
	}), nil
}

func (p *Probe) take(w http.ResponseWriter, r *http.Request) {
	var found pilot.Found
	if err := json.NewDecoder(io.LimitReader(r.Body, maxFound)).Decode(&found); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	offer(p.found, found)
	w.WriteHeader(http.StatusNoContent)
}

// offer sends a value unless there is one already.
func offer[T any](to chan T, value T) {
	select {
	case to <- value:
	default:
	}
}

// Tell is the other side: the pilot that was started says what it would have on its node, over
// the line of its config.
func Tell(ctx context.Context, config pilot.Config) error {
	found, err := json.Marshal(pilot.Probe(ctx, config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, access.BaseURL+foundPath, bytes.NewReader(found))
	if err != nil {
		return err
	}
	answer, err := config.Line.Client(1).Do(request)
	if err != nil {
		return fmt.Errorf("this node does not reach the server, so its pilots cannot work: %w", err)
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the server does not take the answer: %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}
