package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/fairshare"
	"fairway/internal/server/api"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// sharing is how people share a lasting server, as a file says. Where it cannot be read, what it
// said before holds.
type sharing struct {
	mu      sync.Mutex
	file    string
	people  *fairshare.People // nil: no file was ever read
	stamp   fileStamp
	problem string
	asked   bool                        // what an earlier server was told is known
	kept    map[taskqueue.Account]int64 // bytes of outputs of archived runs
}

// fileStamp changes when a file does.
type fileStamp struct {
	size    int64
	changed time.Time
}

// sharesPeriod is how often the file of shares is looked at.
const sharesPeriod = 2 * time.Second

func (s *sharing) open(file string) error {
	s.file = file
	if file == "" {
		return nil
	}
	_, err := s.read()
	return err
}

// read reads the file, if it has changed, and reports whether it says something else now.
func (s *sharing) read() (changed bool, err error) {
	info, err := os.Stat(s.file)
	if err != nil {
		return false, fmt.Errorf("reading the file of shares: %w", err)
	}
	stamp := fileStamp{info.Size(), info.ModTime()}
	if stamp == s.stamp {
		return false, nil
	}
	if info.Size() > fairshare.MaxFile {
		return false, fmt.Errorf("%s is larger than %d bytes", s.file, fairshare.MaxFile)
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return false, fmt.Errorf("reading the file of shares: %w", err)
	}
	s.stamp = stamp
	people, err := fairshare.Parse(s.file, text)
	if err != nil {
		return false, err
	}
	s.people = people
	return true, nil
}

// said is what the core is told after it was loaded.
func (s *sharing) said() []taskqueue.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []taskqueue.Input
	if s.file != "" {
		all = append(all, taskqueue.SetShares{Shares: s.people.Shares})
	}
	for a, bytes := range s.kept {
		all = append(all, taskqueue.SetKept{Account: a, Bytes: bytes})
	}
	return all
}

// keep counts bytes of an archived run, and returns what the core is to be told.
func (s *sharing) keep(a taskqueue.Account, bytes int64) taskqueue.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[taskqueue.Account]int64{}
	}
	s.kept[a] += bytes
	return taskqueue.SetKept{Account: a, Bytes: s.kept[a]}
}

func (s *Server) lookAtShares(ctx context.Context) (problem string, err error) {
	sh := &s.sharing
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.file == "" {
		return "", nil
	}
	before := sh.people
	switch changed, err := sh.read(); {
	case err != nil && err.Error() != sh.problem:
		sh.problem = err.Error()
		s.log.Warn("shares stay as they were, since their file cannot be used", "file", sh.file, "error", err)
	case err == nil && changed:
		if err := s.tellShares(ctx); err != nil {
			sh.people, sh.stamp = before, fileStamp{}
			return sh.problem, err
		}
		sh.problem = ""
		s.log.Info("the file of shares has changed, and counts from now on", "file", sh.file)
	}
	return sh.problem, nil
}

func (s *Server) tellShares(ctx context.Context) error {
	return s.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Dispatch: []taskqueue.Input{taskqueue.SetShares{Shares: s.sharing.people.Shares}}}
	})
}

func (s *Server) watchShares(ctx context.Context) {
	for s.config.Shares != "" && s.sched.Sleep(ctx, sharesPeriod) == nil {
		if _, err := s.lookAtShares(ctx); failed(ctx, err) {
			s.log.Warn("new shares could not be taken; they are tried again", "error", err)
		}
	}
}

// Sharing is part of api.Lasting.
func (s *Server) Sharing(ctx context.Context) (file, problem string, err error) {
	problem, err = s.lookAtShares(ctx)
	return s.config.Shares, problem, err
}

// accountOf finds to whom a submission belongs, and refuses it where that may not have more jobs that
// wait. It returns with which runs it shares results, and the limits over all runs, too.
func (s *Server) accountOf(
	ctx context.Context, w *api.SubmittedWorkflow,
) (a taskqueue.Account, scope string, limits map[string]int64, err error) {
	if _, err := s.lookAtShares(ctx); err != nil {
		return a, "", nil, err
	}
	people, err := s.knownPeople(ctx)
	if err != nil {
		return a, "", nil, err
	}
	var said taskqueue.Shares
	var refused error
	err = s.inbox.Query(ctx, func(c *state.Cores) {
		said = c.Dispatch.SharesSaid()
		if a, refused = people.Account(w.User, w.Group, w.Certain, w.Groups); refused == nil {
			refused = api.RefuseQueued(c.Dispatch, a, 1)
		}
	})
	if unknown, ok := errors.AsType[*fairshare.UnknownError](refused); ok {
		return a, "", nil, connect.NewError(connect.CodePermissionDenied, unknown)
	}
	return a, scopeOf(a), said.Limits, cmp.Or(err, refused)
}

// scopeOf says which runs share results with one of an account: those of its group, and of a user
// beside all groups the own ones: nobody else may see those.
func scopeOf(a taskqueue.Account) string {
	if a.Group != "" {
		return "group " + a.Group
	}
	return "user " + a.User
}

func (s *Server) knownPeople(ctx context.Context) (*fairshare.People, error) {
	sh := &s.sharing
	sh.mu.Lock()
	people, asked := sh.people, sh.asked
	sh.mu.Unlock()
	if people != nil || asked {
		return people, nil
	}
	var said taskqueue.Shares
	if err := s.inbox.Query(ctx, func(c *state.Cores) { said = c.Dispatch.SharesSaid() }); err != nil {
		return nil, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.asked = true; sh.people == nil && len(said.Of) > 0 {
		sh.people = &fairshare.People{Shares: said}
	}
	return sh.people, nil
}

// GroupsOf is part of api.Lasting. While the server ends nobody is in a group.
func (s *Server) GroupsOf(user string) []string {
	people, err := s.knownPeople(context.Background())
	if err != nil {
		return nil
	}
	return people.GroupsOf(user)
}

func (s *Server) hasGroup(group string) bool {
	people, err := s.knownPeople(context.Background())
	return err == nil && people.Has(group)
}

func (s *sharing) limits() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.people == nil {
		return nil
	}
	return s.people.Shares.Limits
}

// LimitsOf are the limits of a run and those over all runs of a server together: of one that both
// have, the lower.
func LimitsOf(run, all map[string]int64) map[string]int64 {
	limits := maps.Clone(all)
	if limits == nil {
		limits = map[string]int64{}
	}
	for name, most := range run {
		if of, ok := limits[name]; !ok || most < of {
			limits[name] = most
		}
	}
	return limits
}
