package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/internal/access"
	"fairway/internal/audit"
	"fairway/internal/notice"
	"fairway/internal/recording"
	"fairway/internal/server/active"
	"fairway/internal/server/api"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/server/loop"
	"fairway/internal/server/people"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/server/term"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Server runs one workflow in one folder, once, or, if it is lasting, all workflows that are
// submitted to it. Open sets its fields, and Run the account of earlier servers before
// anything runs; but for runs, none changes while it runs.
type Server struct {
	config Config
	sched  *sched.Scheduler
	log    *slog.Logger
	began  time.Time

	stateFolder
	rooms
	lasting
	doors
	succession
}

// stateFolder is the state folder, which is the server's from Open to the end of Run: lock says so
// to others, and release gives it up last. authority is what pilots know the server by, and what it
// knows their attempts by; it is the same for all servers of the state.
type stateFolder struct {
	folders   folder.Layout
	lock      *folder.Lock
	records   store.Store
	rawStore  store.Store // the same, without what looks at its errors
	authority *access.Authority
	bodies    *access.Bodies
	tape      *recording.Writer // nil: none
	element   storage.Schemes
	space     space // where outputs are stored
}

// rooms are what all runs share. The loop alone changes a run; all others reach it through the
// inbox.
type rooms struct {
	inbox   *loop.Inbox
	loop    *loop.Loop
	pilots  *launch.Pilots
	storage *publish.Storage
	looked  *publish.Look // of the loop
	runs    runs
}

// lasting is what a lasting server has besides.
type lasting struct {
	retiring retiring
	sharing  sharing
	keeping  keeping
	contents *feed.Contents // what inputs of all its runs hold
	audit    *audit.Log
}

// doors are how people and pilots reach the server: the socket in the state folder, which Open has
// listen, the network, if pilots come that way, and where servers stand by the socket of pilots.
type doors struct {
	listener     net.Listener
	endpoint     *listen.Endpoint
	far          far
	pilotsSocket *listen.PilotsSocket
	web          *listen.Endpoint // nil: there are no pages
	proxy        *listen.Endpoint // nil: no proxy has a socket
	door         *people.Door     // nil: the socket alone is asked
	notices      *notice.Sender   // nil: nobody wants them
}

// succession is of a server whose state other servers have or had: its role, where the records are in a
// PostgreSQL the number of its term, where servers are or were batch jobs its term and those jobs, and
// why this server has left the run to another. cancel is set before anything can leave.
type succession struct {
	role       active.Role
	termNumber uint64
	term       *term.Term
	jobs       *active.Jobs
	left       atomic.Pointer[error]
	cancel     context.CancelFunc
}

// Open takes the lock of the folder, opens the records and the socket, and
// decides what is to be done; nothing runs before Run. Errors: *RunningError
// if another process runs the workflow, those of package store, those of
// flow.New, and missing inputs.
func Open(ctx context.Context, config Config) (*Server, error) {
	if config.Standby != nil && config.Dispatch.Hold == 0 {
		config.Dispatch.Hold = active.Hold
	}
	config = config.withDefaults()
	s := &Server{
		config: config, sched: config.Sched, log: config.Log, began: time.Now(),
		stateFolder: stateFolder{bodies: access.NewBodies()}, lasting: lasting{retiring: retiredTogether},
	}
	s.role = active.Role{Sched: s.sched, Lost: s.leave}
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, cmp.Or(s.leaving(), err)
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
	ctx, opened := s.role.Beating(ctx)
	defer opened()
	if err := s.openState(); err != nil {
		return err
	}
	if s.config.Lasting {
		err = errors.Join(s.sharing.open(s.config.Shares), s.keeping.open(ctx, s.records))
		if err == nil {
			err = s.openSubmitted(ctx)
		}
	} else {
		err = s.openRun(ctx, dir)
	}
	if err != nil {
		return err
	}
	if err := s.openPlaces(ctx); err != nil {
		return err
	}
	if err := s.record(); err != nil {
		return err
	}
	if err := s.openWays(ctx); err != nil {
		return err
	}
	return s.assemble()
}

func (s *Server) takeState(ctx context.Context, dir string) error {
	if b := s.config.Standby; b != nil {
		s.folders, s.role.Seat = b.Folders(), b.Seat()
		return nil
	}
	before, err := s.awaitTerm(ctx, dir)
	if err != nil {
		return err
	}
	if s.lock, s.folders, err = folder.Claim(dir); err != nil {
		return err
	}
	if err := folder.ClaimKind(&s.folders, s.config.Lasting); err != nil {
		return err
	}
	return s.takeTerm(before)
}

func (s *Server) openState() (err error) {
	var authority errgroup.Group // beside the store: each takes a while, and waits for the disk
	authority.Go(func() (err error) {
		if b := s.config.Standby; b != nil {
			s.authority = b.Authority()
			return nil
		}
		s.authority, err = access.OpenAuthority(filepath.Join(s.folders.State, folder.AuthorityName), s.folders.ID)
		return err
	})
	defer func() {
		if failed := authority.Wait(); failed != nil {
			err = failed
		}
	}()
	if s.records, err = s.openStore(); err != nil {
		return err
	}
	s.inbox = loop.NewInbox()
	s.runs.keys, s.runs.beginning = map[submissionName]*state.Run{}, map[submissionName]chan struct{}{}
	s.runs.ended = loop.NewMailbox[taskqueue.RunID]()
	s.space.crowded = loop.NewMailbox[string]()
	s.contents = feed.NewContents()
	s.element = elements.New(s.folders.Roots(), s.sched.Sleep)
	s.storage = publish.NewStorage(s.records, s.folders, s.element, s.inbox, s.tellPerson, s.sched, s.log)
	if b := s.config.Standby; b != nil {
		s.storage.FenceBy(s.termNumber, s.role.Assert, b.RemovesAt())
	}
	return nil
}

// openStore opens the store, so that the server ends when another one writes.
func (s *Server) openStore() (records store.Store, err error) {
	if b := s.config.Standby; b != nil {
		records = b.Records()
	} else {
		if s.config.Store != "" {
			if err := folder.KeepStoreAt(&s.folders, s.config.Store); err != nil {
				return nil, err
			}
		}
		if free, _, err := spaceOf(s.folders.State); err == nil && free < maxSpare/2 && s.config.Lasting {
			s.giveSpare() // to open a store takes some room, too
		}
		if records, err = folder.OpenStore(s.folders.State, s.role.Seat != nil && s.role.Seat.Unclean()); err != nil {
			return nil, err
		}
	}
	s.rawStore, s.termNumber = records, store.TermOf(records)
	if s.config.Lasting {
		records = sparingStore{records, s}
	}
	if s.role.Seat != nil || s.termNumber != 0 {
		return s.role.Store(records), nil
	}
	return records, nil
}

func (s *Server) openRun(ctx context.Context, dir string) error {
	find, err := s.config.finderIn(dir, s.element)
	if err != nil {
		return err
	}
	find.Made = madeIn(s.folders)
	if s.term == nil { // else it may have waited for long
		find.Enumerated = s.config.Enumerated
	}
	o, err := openRecords(ctx, &s.config.RunConfig, s.records, find)
	if err != nil {
		return err
	}
	s.runs.add(s.newRun(s.config.RunConfig, o, find))
	return nil
}

// finderIn finds the inputs of a run whose state is in a folder. Files beside a workflow elsewhere are
// named absolutely: the state may be moved without them.
func (c *Config) finderIn(dir string, element storage.Element) (*feed.Finder, error) {
	base, err := filepath.Abs(cmp.Or(c.Base, dir))
	if err != nil {
		return nil, err
	}
	apart := !sameFolder(base, dir)
	if !apart {
		base = dir
	}
	find := feed.NewFinder(base, c.tellingSlow(element))
	find.Apart = apart
	return find, nil
}

func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// openPlaces makes sure that what jobs write can be stored and published where it is to be.
func (s *Server) openPlaces(ctx context.Context) error {
	own := s.runs.own
	done := own != nil && own.opened.decision == runDone
	if !done {
		if err := publish.CheckWritable(s.config.Storage); err != nil {
			return fmt.Errorf("--storage: %w", err)
		}
		if err := publish.CheckWritable(s.config.Results); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	if err := s.storage.StoreAt(ctx, s.config.Storage); err != nil {
		return fmt.Errorf("--storage: %w", err)
	}
	for i := range s.config.Sites {
		if site := &s.config.Sites[i]; site.Outputs != "" {
			if err := s.storage.StoreOf(ctx, site.Name, site.Outputs, site.Catalog); err != nil && !done {
				return fmt.Errorf("catalog_outputs of the site %s: %w", site.Name, err)
			}
		}
	}
	if own != nil {
		if err := own.openResults(ctx); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	return nil
}

// openWays opens the socket and the port, and the batch systems whose pilots call there.
func (s *Server) openWays(ctx context.Context) (err error) {
	var address string
	if s.config.Standby == nil {
		s.listener, address, err = listen.Unix(s.folders.State)
	} else if s.pilotsSocket, err = listen.OpenPilotsSocket(s.folders.State, s.termNumber); err == nil {
		s.listener, address = s.pilotsSocket, s.pilotsSocket.Address()
		err = s.pilotsSocket.Show()
	}
	if err != nil {
		return err
	}
	if err := s.openDoor(ctx); err != nil {
		return err
	}
	s.pilots = launch.New(s.inbox, s.sched, s.log)
	if s.config.WaitAnyway || s.config.Lasting {
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

func (s *Server) assemble() (err error) {
	s.loop = loop.New(loop.Config{
		Inbox: s.inbox, Store: s.records, Runs: s.runs.rooms(), Lasting: s.config.Lasting, Over: s.over,
		Load: s.load, Look: s.surveyFiles, Revive: s.revive, Pilots: s.pilots, Stores: s.storage,
		Crowded: s.crowded, LeaveTime: s.config.LeaveTime, CommitDelay: s.config.CommitDelay,
		Tape: s.tape, Sched: s.sched, Log: s.log,
	})
	if own := s.runs.own; own != nil {
		own.tellBeginning()
	}
	s.endpoint = listen.NewEndpoint(s.listener, s.handler(), s.log)
	if s.far.listener != nil {
		s.far.endpoint = listen.NewEndpoint(s.far.listener, s.farHandler(), s.log)
	}
	if s.web, err = s.openWeb(); err != nil {
		return err
	}
	if s.proxy, err = s.openProxy(); err != nil {
		return err
	}
	if s.config.Notify != "" {
		s.notices = notice.NewSender(s.config.Notify, s.log)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(s.taskQueue())
	mux.Handle("/", listen.AsOwner(s.peoplesCalls()))
	return s.role.WhileCurrent(mux)
}

func (s *Server) release() {
	if s.notices != nil {
		defer s.notices.Close() // nobody waits for the state meanwhile
	}
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
	s.closeWeb()
	if err := s.audit.Close(); err != nil {
		s.log.Warn("not all that people have done was written down", "error", err)
	}
	if errors.Is(s.leaving(), term.ErrFollowed) {
		return // all names in the state folder are those of another server
	}
	if s.rawStore != nil {
		_ = s.rawStore.Close()
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
// The state can be gone on with. Where another server stands by, this one leaves all to it: jobs and
// pilots go on. Any goroutine may call it, at any time.
func (s *Server) Stop(drain bool) {
	if b := s.config.Standby; b != nil && b.Others().Relieved() {
		s.leave(active.ErrHandedOver)
		return
	}
	if own := s.runs.own; own != nil {
		own.room.Ending.Request(drain)
	} else {
		s.loop.Leaving.Request(drain)
	}
	_ = s.inbox.Wake(context.Background())
}

// Run works until the workflow has ended, or ctx ends, which is Stop(false). A lasting server
// works until Stop.
// An error means that the state could not be kept; otherwise the Outcome tells
// how the run ended, or that it goes on in another server. Run is called once, and
// closes the Server.
func (s *Server) Run(ctx context.Context) (Outcome, error) {
	defer s.release()
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.cancel = cancel
	if why := s.leaving(); why != nil {
		return Outcome{}, why
	}
	spare := make([]byte, heapSpare)
	defer runtime.KeepAlive(spare)
	for _, r := range s.runs.all() {
		if err := r.begin(ctx); err != nil {
			return Outcome{}, fmt.Errorf("beginning the run: %w", err)
		}
	}
	defer context.AfterFunc(ctx, func() { s.Stop(false) })()

	var group sync.WaitGroup
	group.Go(func() { s.loop.Commit(working) })
	group.Go(func() { s.storage.Run(working) })
	s.runs.work(working)
	if s.config.Lasting {
		group.Go(func() { s.endRuns(working) })
		group.Go(func() { s.watchShares(working) })
		group.Go(func() { s.watchResults(working) })
	}
	group.Go(func() { s.watchFolder(working) })
	group.Go(func() { s.watchSpace(working) })
	group.Go(func() { s.makeRoomForOutputs(working) })
	if s.role.Seat != nil {
		group.Go(func() { s.keepSeat(working) })
	}
	if s.notices != nil {
		group.Go(func() { s.watchStuck(working) })
	}
	endpoints := []*listen.Endpoint{s.endpoint}
	if s.far.endpoint != nil {
		endpoints = append(endpoints, s.far.endpoint)
	}
	if s.web != nil {
		endpoints = append(endpoints, s.web)
	}
	if s.proxy != nil {
		endpoints = append(endpoints, s.proxy)
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
	s.runs.rest()
	if s.leaving() != nil {
		s.jobs.Leave()
	}
	switch why := s.leaving(); {
	case errors.Is(why, active.ErrHandedOver):
		return Outcome{HandedOver: true}, nil
	case why != nil:
		return outcome, why
	}
	s.jobs.Withdraw()
	return outcome, err
}

// Report tells how the run of the folder ended, once Run has returned without an error.
func (s *Server) Report(ctx context.Context) (*wire.ProgressReport, error) {
	return api.Progress(ctx, s.runs.own)
}

// heapSpare, in bytes, is never touched, so it takes no memory. The garbage
// collector counts it as in use, and so a small heap may grow by as much again
// before it is collected.
const heapSpare = 16 << 20

func (s *Server) load(ctx context.Context, runs []state.RunOf) (*state.Loaded, error) {
	all, err := state.Load(ctx, s.records, runs, s.config.Dispatch, s.tape != nil)
	if own := s.runs.own; own != nil && err == nil && own.earlier == nil {
		own.earlier = all.Runs[0].Tally.Summary(&all.Runs[0])
	}
	return all, err
}
