package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/disk"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
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

// errHandedOver is why the loop of a server ends whose run goes on in another one.
var errHandedOver = errors.New("the run goes on in another server")

// awaitTerm waits until this server may have the state, where servers of the state are or
// were batch jobs. It returns the one before, for takeTerm.
func (s *Server) awaitTerm(ctx context.Context, dir string) (before term.Holder, err error) {
	l, err := folder.Of(dir)
	if err != nil || l.ID == "" || !term.Used(l.State) {
		return before, err
	}
	return term.Await(ctx, s.sched, l.State, l.ID, disk.Machine(), s.config.launch())
}

// checkTerm returns a *term.HeldError where the server of a folder may run on another
// machine.
func checkTerm(dir string) error {
	l, err := folder.Of(dir)
	if err != nil {
		return err
	}
	if last, err := term.Last(l.State, l.ID); err != nil || last.Elsewhere() {
		return cmp.Or(err, error(&term.HeldError{Holder: last}))
	}
	return nil
}

func (c *Config) launch() string {
	if c.Job == nil {
		return ""
	}
	return c.Job.Launch
}

// takeTerm has this server be the one of the state, on whatever machine others run.
func (s *Server) takeTerm(before term.Holder) (err error) {
	if s.config.Job == nil && !term.Used(s.folders.State) {
		return nil
	}
	if before.Number == 0 { // there was nothing to wait for, unless it has come since then
		if before, err = term.Last(s.folders.State, s.folders.ID); err == nil && before.Lives() {
			err = &term.HeldError{Holder: before}
		}
		if err != nil {
			return err
		}
	}
	self := term.Here(s.folders.ID)
	if job := s.config.Job; job != nil {
		self.Launch, self.Site = job.Launch, job.Site
	}
	if s.term, err = term.Take(s.folders.State, self, before); err != nil {
		return err
	}
	if before.Lives() && before.Site == self.Site && before.Launch != self.Launch {
		s.predecessor = before.Launch
	}
	return nil
}

// beatWhileOpening says that this server lives, until the returned function is called: to look
// at all inputs may take minutes.
func (s *Server) beatWhileOpening() (end func()) {
	if s.term == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		for s.sched.Sleep(ctx, term.BeatTime) == nil {
			_ = s.term.Beat() // who followed is seen by what changes the store
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}

// openPeople lets people reach the server over the network, by what the file of its term, or of
// a lasting server, says.
func (s *Server) openPeople(addresses []string) error {
	if s.config.Job == nil && !s.config.Lasting {
		return nil
	}
	connection := access.Connection{
		Addresses: addresses, Standby: s.config.Standby != nil, Pin: s.authority.Pin(), Launch: access.Person,
		Token:       access.NewToken(),
		Certificate: string(s.authority.Certificate()),
	}
	s.far.people = &connection
	if s.config.Lasting {
		if before, err := access.ReadConnection(s.serviceFile()); err == nil {
			connection.Token = before.Token // copies of the file stay good
		}
		if err := s.writePublic(connection); err != nil {
			return err
		}
	}
	return s.setOwner(connection)
}

// setOwner gives the owner a token, by the file that says how the server is reached.
func (s *Server) setOwner(connection access.Connection) error {
	if s.config.Lasting {
		if err := connection.Write(s.serviceFile()); err != nil {
			return err
		}
	} else if err := s.term.Change(func(h *term.Holder) { h.Connection = &connection }); err != nil {
		return err
	}
	s.door.SetOwner(connection.Token)
	return nil
}

// serviceFile says how people reach a lasting server over the network.
func (s *Server) serviceFile() string { return filepath.Join(s.folders.State, folder.ServiceName) }

// disownService removes the file that says how another server is reached, whose folder was copied:
// who has it would ask that one, and its token is not that of this server.
func (s *Server) disownService() error {
	before, err := access.ReadConnection(s.serviceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && before.Pin == s.authority.Pin() {
		return nil
	}
	if err := os.Remove(s.serviceFile()); err != nil {
		return err
	}
	if err != nil {
		s.log.Warn("the file .fairway/service could not be read; if this server listens, it has a new one with another "+
			"token", "error", err)
		return nil
	}
	s.log.Warn("this folder is a copy of that of another server, whose token is not good here: copies of the file " +
		".fairway/service lead to that one; if this server listens, it has a file and a token of its own")
	return nil
}

func (s *Server) service() *api.Service {
	service := api.NewService(s, s.folders, s.sched)
	if s.config.Lasting {
		service = api.NewLastingService(s, s, s.folders, s.sched)
	}
	service.Measure(s)
	service.TellVersion(s.config.Version)
	return service.ReadBy(s.element)
}

// keepTerm says again and again that this server lives. It ends the server when another
// one has taken over, or is to.
func (s *Server) keepTerm(ctx context.Context) {
	var left time.Duration
	if s.config.Job != nil {
		left = s.config.Job.Left
	}
	submitted := left == 0
	if s.predecessor != "" {
		if err := s.withdrawPredecessor(); err != nil {
			s.log.Warn("the job of the server before is not withdrawn", "launch", s.predecessor, "error", err)
		}
	}
	for ctx.Err() == nil {
		switch age := time.Since(s.began); {
		case errors.Is(s.term.Beat(), term.ErrFollowed):
			s.leave(term.ErrFollowed)
		case s.term.Asked():
			s.leave(errHandedOver)
		case !submitted && age >= successorAt(left):
			submitted = true
			if err := s.submitSuccessor(); err != nil {
				s.tellPerson(fmt.Sprintf("no further job for the server can be submitted: %v; "+
					"when the time of this one is over, run it again to go on", err))
			}
		case left > 0 && age >= handOverAt(left):
			s.leave(errHandedOver)
		}
		_ = s.sched.Sleep(ctx, term.BeatTime)
	}
}

// submitSuccessor has the batch system start the next server. The launch is durable
// before.
func (s *Server) submitSuccessor() error {
	job := s.config.Job
	pending, fresh, err := term.Announce(s.folders.State, term.Pending{
		State: s.folders.ID, Launch: term.NewLaunch(), Site: job.Site,
	})
	if err != nil {
		return err
	}
	if !fresh && pending.Site != job.Site {
		return fmt.Errorf("the job %s of the site %s is to be the next server", pending.Launch, pending.Site)
	}
	if err := s.term.Change(func(h *term.Holder) { h.Successor = pending.Launch }); err != nil {
		return err
	}
	servers, err := s.jobsOfServers()
	if err != nil {
		return err
	}
	s.successor = pending.Launch
	servers.Start(pending.Launch)
	return nil
}

// withdrawPredecessor ends the job of a server that did not end in order: it may be frozen, or
// the batch system may have lost its end.
func (s *Server) withdrawPredecessor() error {
	servers, err := s.jobsOfServers()
	if err == nil {
		_, err = servers.Adopt(context.Background(), []string{s.predecessor})
		servers.Withdraw(s.predecessor)
	}
	return err
}

// jobsOfServers are the jobs of a batch system that are servers of this state. Only keepTerm
// calls it.
func (s *Server) jobsOfServers() (*batch.Roster, error) {
	if s.servers != nil {
		return s.servers, nil
	}
	job := s.config.Job
	system, err := job.System(s.folders)
	if err != nil {
		return nil, err
	}
	s.servers = batch.NewRoster(batch.RosterConfig{
		Site: job.Site, Job: "server", System: system, Every: job.Poll, Sched: s.sched, Log: s.log,
		Elsewhere: func(string) bool { return true },
		Ended:     func(batch.End) {},
		Tell:      s.tellPerson,
	})
	return s.servers, nil
}

// withdrawServers is for a run that has ended: no job is to be its server any more.
func (s *Server) withdrawServers() {
	if s.servers == nil {
		return
	}
	s.servers.Withdraw(s.successor)
	err := s.servers.Close()
	if s.successor != "" {
		err = errors.Join(err, term.Forget(s.folders.State, s.folders.ID, s.successor))
	}
	if err != nil {
		s.log.Warn("jobs that are servers could not be withdrawn", "next", s.successor, "before", s.predecessor, "error", err)
	}
}

// leave ends the server, and neither the run nor its pilots.
func (s *Server) leave(why error) {
	s.left.CompareAndSwap(nil, &why)
	if socket, ok := s.listener.(interface{ SetUnlinkOnClose(unlink bool) }); ok && errors.Is(why, term.ErrFollowed) {
		socket.SetUnlinkOnClose(false) // its name is that of another server's by now
	}
	if IsReplaced(why) && s.records != nil {
		store.Abandon(s.rawStore)
	}
	if s.cancel != nil {
		s.cancel()
	}
}

// leaving is why the server has left a run that goes on, nil where it has not.
func (s *Server) leaving() error {
	if why := s.left.Load(); why != nil {
		return *why
	}
	return nil
}

// fenced is a store that only the server of the term changes.
type fenced struct {
	store.Store
	server *Server
}

// Apply is part of store.Store.
func (f fenced) Apply(ctx context.Context, records []taskqueue.Record) error {
	if err := f.server.term.Good(); err != nil {
		if errors.Is(err, term.ErrFollowed) && f.server.cancel != nil {
			f.server.leave(err)
		}
		return err
	}
	return f.Store.Apply(ctx, records)
}
