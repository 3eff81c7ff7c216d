package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fairway/internal/batch"
	"fairway/internal/dispatch"
	"fairway/sched"
)

const (
	// SubmitTries is how often in a row a batch system may refuse to start a
	// pilot before the run ends.
	SubmitTries = 5
	// SubmitPause is the time after the first refusal. It doubles with each
	// further one.
	SubmitPause = time.Second
)

// pilots are those that this server had started, at one site.
type pilots struct {
	site   string
	system batch.System

	closing sync.Once

	mu       sync.Mutex      // guards what follows
	starting int             // asked for, not yet submitted
	live     map[string]bool // launches that the batch system has, and dispatch knows
	// early has the reasons of pilots that ended before dispatch knew them. Their
	// ends are told after that, or dispatch would wait for them for ever.
	early map[string]string
}

func newPilots(site string, system batch.System) *pilots {
	return &pilots{site: site, system: system, live: map[string]bool{}, early: map[string]string{}}
}

// close ends the batch system, with all pilots that are left, once.
func (p *pilots) close() {
	p.closing.Do(func() { _ = p.system.Close() })
}

// none says that no pilot is there and none will come.
func (p *pilots) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starting == 0 && len(p.live) == 0
}

func (p *pilots) launches() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.live))
	for name := range p.live {
		names = append(names, name)
	}
	return names
}

// strangers are those of some launches that this server does not know.
func (p *pilots) strangers(launches []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unknown []string
	for _, name := range launches {
		if !p.live[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func (p *pilots) asked(starts []dispatch.Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range starts {
		p.starting += s.Count
	}
}

// submitted takes note of launches that dispatch knows now, and returns the ends
// of those that were too early for it.
func (p *pilots) submitted(asked int, launches []string) (early []dispatch.Input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting -= asked
	for _, name := range launches {
		if reason, over := p.early[name]; over {
			delete(p.early, name)
			early = append(early, dispatch.PilotEnded{Launch: name, Reason: reason})
			continue
		}
		p.live[name] = true
	}
	return early
}

// postpone keeps the end of a pilot that dispatch does not know yet, for
// submitted to return, and says whether it did.
func (p *pilots) postpone(end batch.Ending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live[end.Launch] {
		return false
	}
	p.early[end.Launch] = end.Reason
	return true
}

func (p *pilots) ended(launch string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, launch)
}

// startLoop submits the pilots that dispatch asks for until ctx ends.
func (s *Server) startLoop(ctx context.Context) {
	for {
		starts, err := s.out.start.take(ctx, s.sched)
		if err != nil {
			return
		}
		for _, start := range starts {
			if err := s.start(ctx, start); err != nil {
				return
			}
		}
	}
}

func (s *Server) start(ctx context.Context, start dispatch.Start) error {
	for try := range SubmitTries {
		launches, err := s.pilots.system.Submit(ctx, start.Count)
		if err := s.tellSubmitted(ctx, start.Site, launches); err != nil {
			return err
		}
		if err := s.tellEnded(ctx, s.pilots.submitted(len(launches), launches)); err != nil {
			return err
		}
		start.Count -= len(launches)
		if err == nil {
			return nil
		}
		s.log.Warn("a pilot could not be started", "site", start.Site, "error", err)
		if try == SubmitTries-1 {
			s.fail(ctx, fmt.Errorf("no pilot can be started at %s: %w", start.Site, err))
		} else if err := s.sched.Sleep(ctx, SubmitPause<<try); err != nil {
			return err
		}
	}
	s.pilots.submitted(start.Count, nil)
	return s.inbox.send(ctx, &request{})
}

func (s *Server) tellSubmitted(ctx context.Context, site string, launches []string) error {
	if len(launches) == 0 {
		return nil
	}
	return s.inbox.deliver(ctx, func() *request {
		return &request{dispatch: each(launches, func(name string) dispatch.Input {
			return dispatch.PilotSubmitted{Site: site, Launch: name}
		})}
	})
}

// stopLoop withdraws pilots that dispatch no longer wants until ctx ends.
func (s *Server) stopLoop(ctx context.Context) {
	for {
		launches, err := s.out.stop.take(ctx, s.sched)
		if err != nil {
			return
		}
		s.withdraw(ctx, launches)
	}
}

func (s *Server) withdraw(ctx context.Context, launches []string) {
	for _, name := range launches {
		if err := s.pilots.system.Withdraw(ctx, name); err != nil {
			s.log.Warn("a pilot could not be withdrawn", "launch", name, "error", err)
		}
	}
}

// endedLoop tells dispatch of pilots that the batch system no longer has.
func (s *Server) endedLoop(ctx context.Context) {
	for {
		end, err := sched.Receive(ctx, s.sched, s.pilots.system.Ended())
		if err != nil {
			return
		}
		if s.pilots.postpone(end) {
			continue
		}
		err = s.tellEnded(ctx, []dispatch.Input{dispatch.PilotEnded{Launch: end.Launch, Reason: end.Reason}})
		s.pilots.ended(end.Launch)
		if err != nil || s.inbox.send(ctx, &request{}) != nil { // the loop may wait for the last one
			return
		}
	}
}

func (s *Server) tellEnded(ctx context.Context, ends []dispatch.Input) error {
	if len(ends) == 0 {
		return nil
	}
	return s.inbox.deliver(ctx, func() *request { return &request{dispatch: ends} })
}
