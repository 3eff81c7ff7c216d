package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/access"
	"fairway/internal/disk"
	"fairway/internal/server/active"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/store"
)

// awaitTerm waits until this server may have the state, where servers of the state are or
// were batch jobs. It returns the one before, for takeTerm.
func (s *Server) awaitTerm(ctx context.Context, dir string) (before term.Holder, err error) {
	l, err := folder.Of(dir)
	if err != nil || l.ID == "" || !term.Used(l.State) {
		return before, err
	}
	return term.Await(ctx, s.sched, l.State, l.ID, disk.Machine(), s.config.Job.LaunchName())
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
	s.role.Seat = active.ByTerm(s.term)
	s.jobs = active.NewJobs(s.config.Job, s.term, before, active.JobsConfig{
		Folders: s.folders, Sched: s.sched, Log: s.log, Tell: s.tellPerson,
	})
	return nil
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
// who has it would ask that one, and its token is not that of this server. Where none stand by any more it
// takes that out of the file: who reads it asks at the socket again.
func (s *Server) disownService() error {
	before, err := access.ReadConnection(s.serviceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && before.Pin == s.authority.Pin() {
		if !before.Standby || s.config.Standby != nil {
			return nil
		}
		before.Standby = false
		return errors.Join(s.writePublic(before), before.Write(s.serviceFile()))
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

// leave ends the server, and neither the run nor its pilots.
func (s *Server) leave(why error) {
	s.left.CompareAndSwap(nil, &why)
	if socket, ok := s.listener.(interface{ SetUnlinkOnClose(unlink bool) }); ok && errors.Is(why, term.ErrFollowed) {
		socket.SetUnlinkOnClose(false) // its name is that of another server's by now
	}
	if active.IsReplaced(why) && s.records != nil {
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
