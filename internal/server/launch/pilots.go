package launch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Pilots are those that this server had started, or took over, at all sites. They are
// what the loop asks for pilots (loop.Pilots).
type Pilots struct {
	inbox   *loop.Inbox
	sched   *sched.Scheduler
	log     *slog.Logger
	rosters map[string]*batch.Roster // by site; complete before the loop runs
	calls   map[string]*batch.Calls  // the same
	closing sync.Once
	// waitAnyway is set before sites are added.
	waitAnyway bool
	// connections are those of launches that reach the server over a network; nil
	// where none do.
	connections *Connections

	mu       sync.Mutex        // guards live
	live     map[string]string // the site of each launch that is durable and has not ended
	came     map[string]bool   // those of live of which a pilot was heard, by this server or one before
	gone     map[string]bool   // those of live that the run need not wait for, until the batch system says that they ended
	hopeless map[string]bool   // sites that said that they could never start a pilot
	// reappeared are launches that were expected although they were not in live.
	reappeared map[string]bool
}

// New makes Pilots without a site.
func New(inbox *loop.Inbox, s *sched.Scheduler, log *slog.Logger) *Pilots {
	return &Pilots{inbox: inbox, sched: s, log: log, rosters: map[string]*batch.Roster{},
		calls: map[string]*batch.Calls{}, live: map[string]string{},
		came: map[string]bool{}, gone: map[string]bool{}, hopeless: map[string]bool{}, reappeared: map[string]bool{}}
}

// UseConnections has the connection files of launches go when the launches end. The
// loop must not run yet.
func (p *Pilots) UseConnections(c *Connections) { p.connections = c }

// WaitAnyway has the run wait for sites that say that they could never start a pilot. It
// comes before AddSite.
func (p *Pilots) WaitAnyway() { p.waitAnyway = true }

// AddSite adds a batch system, which is asked for the status at most once in a time
// (0: batch.DefaultEvery). If all sites say that they could never start a pilot, the run
// fails, unless WaitAnyway was called. The loop must not run yet.
func (p *Pilots) AddSite(site taskqueue.Site, system batch.System, poll time.Duration) {
	never := func(reason string) { go p.neverStarts(site.Name, reason) }
	if p.waitAnyway {
		never = nil
	}
	system, p.calls[site.Name] = batch.Count(system)
	p.rosters[site.Name] = batch.NewRoster(batch.RosterConfig{
		Site: site.Name, System: system, MaxPilots: site.MaxPilots, Every: poll,
		Ended: p.end, Withdrawn: p.withdrawn, Sched: p.sched, Log: p.log, Elsewhere: p.elsewhere(site.Name), Never: never,
		Tell: func(text string) { go func() { _ = p.inbox.Note(context.Background(), text) }() },
	})
}

// neverStarts takes note of a site that can never start a pilot. It ends the run when there
// is no other.
func (p *Pilots) neverStarts(site, reason string) {
	p.mu.Lock()
	p.hopeless[site] = true
	all := len(p.hopeless) == len(p.rosters)
	p.mu.Unlock()
	why := fmt.Sprintf("the site %s can never start a pilot as it is described (`fairway site show %s`): %s", site,
		site, reason)
	if all {
		_ = p.inbox.Fail(context.Background(), fmt.Errorf("%s; --wait-anyway waits all the same", why))
		return
	}
	_ = p.inbox.Note(context.Background(), why)
}

// elsewhere finds launches of the other sites of this run, which may be of the same batch
// system. Those of a site that is none of this run nobody wants.
func (p *Pilots) elsewhere(site string) func(launch string) bool {
	return func(launch string) bool {
		of := loop.SiteOf(launch)
		return of != site && p.rosters[of] != nil
	}
}

// Waiting says why pilots are not there yet, one sentence each for a person.
func (p *Pilots) Waiting() (lines []string) {
	p.mu.Lock()
	came := maps.Clone(p.came)
	p.mu.Unlock()
	for _, site := range slices.Sorted(maps.Keys(p.rosters)) {
		lines = append(lines, p.rosters[site].Waiting(came)...)
	}
	return lines
}

// Calls is how often each site's batch system was asked what.
func (p *Pilots) Calls() map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for site, c := range p.calls {
		all[site] = map[string]int64{
			"submit": c.Submits.Load(), "status": c.Statuses.Load(), "withdraw": c.Withdrawals.Load(), "errors": c.Errors.Load(),
		}
	}
	return all
}

// Close ends the batch systems, with all pilots that are left, once.
func (p *Pilots) Close() {
	p.closing.Do(func() {
		var all sync.WaitGroup
		for _, r := range p.rosters {
			all.Go(func() { _ = r.Close() })
		}
		all.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.connections == nil {
			return
		}
		for launch := range p.gone {
			p.connections.Forget(launch)
		}
		p.connections.Close()
	})
}

// Leave ends the work for all batch systems, and leaves the pilots to the next server.
// Close does nothing then.
func (p *Pilots) Leave() {
	p.closing.Do(func() {
		for _, r := range p.rosters {
			_ = r.Leave()
		}
	})
}

// None is part of loop.Pilots.
func (p *Pilots) None() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.live) == len(p.gone)
}

// Awaited is part of loop.Pilots.
func (p *Pilots) Awaited() (launches []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for launch := range p.live {
		if !p.gone[launch] {
			launches = append(launches, launch)
		}
	}
	slices.Sort(launches)
	return launches
}

// withdrawn lets a run end before the batch system says that a launch has ended of which no
// pilot was ever heard. One that comes all the same is waited for again.
func (p *Pilots) withdrawn(launch string) {
	p.mu.Lock()
	site, ok := p.live[launch]
	ends := ok && !p.came[launch] && !p.rosters[site].Notified()
	if ends {
		p.gone[launch] = true
	}
	p.mu.Unlock()
	if ends {
		_ = p.inbox.Wake(context.Background()) // the loop may wait for the last one
	}
}

// Here is part of loop.Pilots. Batch systems that are asked for their pilots say only
// seconds later that one has ended; the run need not wait for that. What is left of it
// then, Close ends. A launch that has no end to come is expected once more, or jobs would
// wait for the lease of a pilot that was killed before it was heard. That is done once: a
// pilot that comes yet again lives, whatever its batch system says.
func (p *Pilots) Here(l loop.Launch, here bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gone, l.Name)
	site, ok := p.live[l.Name]
	if ok {
		p.came[l.Name] = true
	}
	switch {
	case here && !ok && l.Name != "" && !p.reappeared[l.Name] && p.rosters[l.Site] != nil:
		p.reappeared[l.Name], p.came[l.Name] = true, true
		p.live[l.Name] = l.Site
		p.rosters[l.Site].Expect(l.Name)
	case !here && ok && !p.rosters[site].Notified():
		p.gone[l.Name] = true
	}
}

// Launches is part of loop.Pilots.
func (p *Pilots) Launches() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.live))
}

// Start is part of loop.Pilots.
func (p *Pilots) Start(launches []loop.Launch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range launches {
		if r := p.rosters[l.Site]; r != nil {
			p.live[l.Name] = l.Site
			r.Start(l.Name)
		}
	}
}

// Withdraw is part of loop.Pilots.
func (p *Pilots) Withdraw(launches []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range launches {
		if r := p.rosters[p.live[name]]; r != nil {
			r.Withdraw(name)
		}
	}
}

// Adopt takes over the launches that are known from records. It returns the ends of
// those of which it is known at once that they have ended. The loop calls it with
// cores that were just loaded.
func (p *Pilots) Adopt(ctx context.Context, known []taskqueue.LaunchView) (ends []taskqueue.Input, err error) {
	bySite := map[string][]string{}
	var gone []batch.End
	for _, l := range known {
		if access.IsByHand(l.Launch) {
			continue // it returns by itself, or is given up
		}
		if p.rosters[l.Site] == nil {
			gone = append(gone, batch.End{Launch: l.Launch, Reason: fmt.Sprintf("the site %s is not one of this run", l.Site)})
			continue
		}
		bySite[l.Site] = append(bySite[l.Site], l.Launch)
		p.mu.Lock()
		p.live[l.Launch] = l.Site
		if l.Came {
			p.came[l.Launch] = true
		}
		p.mu.Unlock()
	}
	for site, r := range p.rosters {
		ended, failed := r.Adopt(ctx, bySite[site])
		if failed != nil {
			err = fmt.Errorf("pilots of an earlier run could not be looked for at %s: %w", site, failed)
		}
		gone = append(gone, ended...)
	}
	for _, end := range gone {
		p.forget(end.Launch)
		ends = append(ends, taskqueue.PilotEnded{Launch: end.Launch, Reason: end.Reason})
	}
	if p.connections != nil {
		p.connections.Keep(p.Launches())
	}
	return ends, err
}

func (p *Pilots) forget(launch string) {
	if p.connections != nil {
		p.connections.Forget(launch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, launch)
	delete(p.came, launch)
	delete(p.gone, launch)
}

// end tells dispatch of a pilot that its batch system no longer has. It is forgotten in
// the same moment, so that Here knows of each pilot whether it came before or after.
func (p *Pilots) end(end batch.End) {
	ctx := context.Background()
	err := p.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{
			Prepare:  func(*state.Cores, *loop.Request) error { p.forget(end.Launch); return nil },
			Dispatch: []taskqueue.Input{taskqueue.PilotEnded{Launch: end.Launch, Reason: end.Reason}},
		}
	})
	if err != nil {
		p.forget(end.Launch)
	}
	_ = p.inbox.Wake(ctx) // the loop may wait for the last one
}
