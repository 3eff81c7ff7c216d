package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/dispatch"
	"fairway/internal/recording"
	"fairway/internal/server/api"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/server/term"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Server runs one workflow in one folder, once. Open sets its fields, and Run the
// account of earlier servers before anything runs; but for concluded, none changes while
// it runs.
type Server struct {
	config Config
	sched  *sched.Scheduler
	log    *slog.Logger

	// The state folder, which is this server's from Open to the end of Run: lock says so
	// to others, and release gives it up last. opened holds the store and what was
	// decided from it. authority is what pilots know the server by, and what it knows
	// their attempts by; it is the same for all servers of the state.
	folders   folder.Layout
	lock      *folder.Lock
	opened    *opened
	authority *access.Authority
	bodies    *access.Bodies
	tape      *recording.Writer // nil: none
	find      *feed.Finder
	element   storage.Schemes

	// The rooms. The loop alone changes the run; all others reach it through the inbox.
	inbox  *loop.Inbox
	loop   *loop.Loop
	pilots *launch.Pilots
	feeds  *feed.Feeder
	files  *publish.Files

	// How people and pilots reach the server: the socket in the state folder, which
	// Open has listen, and the network, if pilots come that way.
	listener net.Listener
	endpoint *listen.Endpoint
	far      far

	// Where servers of the state are or were batch jobs: the term of this one, the batch
	// system with the jobs that are servers (nil until one of them matters), the job before if
	// it did not end in order, the one that is to follow, and why this server has left the
	// run to another. cancel is set before anything can leave.
	term        *term.Term
	servers     *batch.Roster
	predecessor string
	successor   string
	left        atomic.Pointer[error]
	cancel      context.CancelFunc

	// The times of the run, and how it began. concluded is nil until it has ended.
	began     time.Time
	before    state.Run     // as earlier servers left it
	earlier   *wire.Summary // of what earlier servers have recorded; nil until the cores are loaded, the loop's
	looked    *publish.Look // of the loop
	begun     bool          // the cores were told that the run goes on
	retries   bool          // failed jobs are tried again when the cores are loaded first
	concluded atomic.Pointer[Outcome]
}

// Open takes the lock of the folder, opens the records and the socket, and
// decides what is to be done; nothing runs before Run. Errors: *RunningError
// if another process runs the workflow, those of package store, those of
// flow.New, and missing inputs.
func Open(ctx context.Context, config Config) (*Server, error) {
	config = config.withDefaults()
	s := &Server{config: config, sched: config.Sched, log: config.Log, began: time.Now(), bodies: access.NewBodies()}
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// open takes one thing after the other: the state, what it holds, the places of files, and the
// ways to people and pilots. assemble connects them.
func (s *Server) open(ctx context.Context) error {
	dir, err := filepath.Abs(s.config.Folder)
	if err != nil {
		return err
	}
	if err := s.takeState(ctx, dir); err != nil {
		return err
	}
	defer s.beatWhileOpening()()
	if err := s.openRun(ctx, dir); err != nil {
		return err
	}
	if err := s.openPlaces(ctx); err != nil {
		return err
	}
	if err := s.record(); err != nil {
		return err
	}
	if err := s.openWays(); err != nil {
		return err
	}
	s.assemble()
	return nil
}

// takeState makes this server the one of the state.
func (s *Server) takeState(ctx context.Context, dir string) error {
	before, err := s.awaitTerm(ctx, dir)
	if err != nil {
		return err
	}
	if s.lock, s.folders, err = folder.Claim(dir); err != nil {
		return err
	}
	return s.takeTerm(before)
}

// openRun opens the store, and decides how the run begins.
func (s *Server) openRun(ctx context.Context, dir string) (err error) {
	if s.authority, err = access.OpenAuthority(
		filepath.Join(s.folders.State, folder.AuthorityName), s.folders.ID,
	); err != nil {
		return err
	}
	s.element = elements.New(s.folders.Roots(), s.sched.Sleep)
	s.find = feed.NewFinder(dir, s.config.tellingSlow(s.element))
	s.find.State = s.folders.ID
	records, err := folder.OpenStore(s.folders.State, s.term != nil && s.term.Unclean)
	if err != nil {
		return err
	}
	if s.term != nil {
		records = fenced{records, s}
	}
	if s.opened, err = openRecords(ctx, &s.config, records, s.find); err != nil {
		return errors.Join(err, records.Close())
	}
	return nil
}

// openPlaces makes sure that what jobs write can be stored and published where it is to be.
func (s *Server) openPlaces(ctx context.Context) error {
	s.inbox = loop.NewInbox()
	s.files = publish.New(s.opened.store, s.folders, s.element, s.inbox, s.tellPerson, s.sched, s.log)
	if s.opened.decision != runDone {
		if err := publish.CheckWritable(s.config.Storage); err != nil {
			return fmt.Errorf("--storage: %w", err)
		}
		if err := publish.CheckWritable(s.config.Results); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	if err := s.files.StoreAt(ctx, s.config.Storage); err != nil {
		return fmt.Errorf("--storage: %w", err)
	}
	if s.config.Results != "" {
		if err := s.files.PublishAt(ctx, s.config.Results); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	return nil
}

// openWays opens the socket and the port, and the batch systems whose pilots call there.
func (s *Server) openWays() (err error) {
	var address string
	if s.listener, address, err = listen.Unix(s.folders.State); err != nil {
		return err
	}
	s.pilots = launch.New(s.inbox, s.sched, s.log)
	if s.config.WaitAnyway {
		s.pilots.WaitAnyway()
	}
	if s.config.System != nil {
		system, err := s.config.System("unix:"+address, s.folders)
		if err != nil {
			return err
		}
		s.pilots.AddSite(s.config.Site, system, 0)
	}
	return s.openFar()
}

// record opens the recording, where one is wanted.
func (s *Server) record() error {
	if s.config.Recording == "" {
		return nil
	}
	var err error
	s.tape, err = recording.Append(s.config.Recording, recording.DefaultLimit, recording.Beginning{
		Workflow: s.config.Workflow, Dispatch: s.config.Dispatch,
	})
	return err
}

// assemble makes the parts and connects them.
func (s *Server) assemble() {
	s.feeds = feed.New(s.opened.flow.Inputs(), s.find, s.inbox, s.sched, s.log)
	s.loop = loop.New(loop.Config{
		Inbox: s.inbox, Store: s.opened.store, Load: s.load, Look: s.surveyFiles, Revive: s.revive,
		Pilots: s.pilots, Files: s.files, InputsClosed: s.feeds.AllClosed,
		LeaveTime: s.config.LeaveTime, CommitDelay: s.config.CommitDelay,
		Tape: s.tape, Sched: s.sched, Log: s.log,
	})
	for _, note := range s.opened.losses() {
		s.loop.Ending.Note(note)
	}
	if s.opened.decision == runDone && s.files.OtherPlace {
		s.loop.Ending.Note(fmt.Sprintf("all is done already: what is stored stays where it is; only what jobs write from "+
			"now on is stored at %s", publish.ShownPlace(s.config.Storage, s.folders)))
	}
	s.endpoint = listen.NewEndpoint(s.listener, s.handler(), s.log)
	if s.far.listener != nil {
		s.far.endpoint = listen.NewEndpoint(s.far.listener, s.farHandler(), s.log)
	}
}

// PilotsWaiting says why pilots are not there yet, one sentence each for a person.
func (s *Server) PilotsWaiting() []string { return s.pilots.Waiting() }

// CloseInput closes an open input, or all of them, for a person.
func (s *Server) CloseInput(ctx context.Context, name string) error {
	return s.feeds.CloseInput(ctx, name)
}

// FindFile describes a file that a submitted job reads.
func (s *Server) FindFile(ctx context.Context, lfn, file string) (dispatch.ExistingFile, error) {
	found, err := s.find.Named(ctx, lfn, file)
	return found.ExistingFile, err
}

// handler serves pilots and people at the socket of the state folder.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(s.taskQueue())
	mux.Handle(s.workflow())
	return mux
}

// release gives back what Open took, as far as it came.
func (s *Server) release() {
	if s.pilots != nil && s.leaving() != nil {
		s.pilots.Leave()
	} else if s.pilots != nil {
		s.pilots.Close()
	}
	if err := s.tape.Close(); err != nil {
		s.log.Warn("not all was recorded", "error", err)
	}
	for _, l := range []net.Listener{s.listener, s.far.listener} {
		if l != nil {
			_ = l.Close()
		}
	}
	if errors.Is(s.leaving(), term.ErrFollowed) {
		return // all names in the state folder are those of another server
	}
	if s.opened != nil {
		_ = s.opened.store.Close()
	}
	if s.lock != nil {
		_ = listen.RemoveSocket(s.folders.State)
		_ = s.lock.Release()
	}
	if s.term != nil {
		if err := s.term.End(); err != nil && !errors.Is(err, term.ErrFollowed) {
			s.log.Warn("the next server waits until this one has been silent for some time", "error", err)
		}
	}
}

// Stop asks for an end: with drain after the attempts that run, else at once.
// The state can be gone on with. Any goroutine may call it, at any time.
func (s *Server) Stop(drain bool) {
	s.loop.Ending.Request(drain)
	_ = s.inbox.Wake(context.Background())
}

// Run works until the workflow has ended, or ctx ends, which is Stop(false).
// An error means that the state could not be kept; otherwise the Outcome tells
// how the run ended, or that it goes on in another server. Run is called once, and
// closes the Server.
func (s *Server) Run(ctx context.Context) (Outcome, error) {
	defer s.release()
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.cancel = cancel
	spare := make([]byte, heapSpare)
	defer runtime.KeepAlive(spare)
	if err := s.opened.begin(ctx, &s.config, state.Logs(s.folders.Logs)); err != nil {
		return Outcome{}, fmt.Errorf("beginning the run: %w", err)
	}
	if err := s.files.Load(ctx); err != nil {
		return Outcome{}, fmt.Errorf("beginning the run: %w", err)
	}
	s.before = *s.opened.run
	s.retries = s.opened.decision == runOn && !s.config.Workflow.Open()
	s.files.InputsGone = s.opened.run.InputsGone
	s.find.Run = s.opened.run.ID
	defer context.AfterFunc(ctx, func() { s.Stop(false) })()

	var group sync.WaitGroup
	group.Go(func() { s.loop.Commit(working) })
	group.Go(func() { s.files.Run(working) })
	group.Go(func() { s.feeds.Run(working, s.opened.now, s.opened.inputs) })
	if s.term != nil {
		group.Go(func() { s.keepTerm(working) })
	}
	endpoints := []*listen.Endpoint{s.endpoint}
	if s.far.endpoint != nil {
		endpoints = append(endpoints, s.far.endpoint)
	}
	for _, e := range endpoints {
		group.Go(e.Serve)
	}
	err := s.loop.Run(working)
	var outcome Outcome
	closing := listen.ClosingTime
	if s.leaving() != nil {
		closing = 0 // who follows the run asks the next server
	} else {
		outcome = s.conclude(err)
	}
	cancel()
	for _, e := range endpoints {
		group.Go(func() { e.Close(closing) })
	}
	group.Wait()
	if s.servers != nil && s.leaving() != nil {
		_ = s.servers.Leave()
	}
	switch why := s.leaving(); {
	case errors.Is(why, errHandedOver):
		return Outcome{HandedOver: true}, nil
	case why != nil:
		return outcome, why
	}
	s.withdrawServers()
	return outcome, err
}

// Report tells how the run ended, once Run has returned without an error.
func (s *Server) Report(ctx context.Context) (*wire.ProgressReport, error) {
	return api.Progress(ctx, live{s})
}

// heapSpare, in bytes, is never touched, so it takes no memory. The garbage
// collector counts it as in use, and so a small heap may grow by as much again
// before it is collected.
const heapSpare = 16 << 20

func (s *Server) load(ctx context.Context) (*state.Loaded, error) {
	all, err := state.Load(ctx, s.opened.store, s.opened.run.ID, s.config.Workflow, s.config.Dispatch, s.tape != nil)
	if err == nil && s.earlier == nil {
		s.earlier = all.Tally.Summary(&all.Cores)
	}
	return all, err
}
