package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/batch"
	"fairway/internal/dispatch"
	"fairway/internal/server/state"
)

// pilots are those that this server had started, or took over, at all sites.
type pilots struct {
	rosters map[string]*batch.Roster // by site
	closing sync.Once

	mu   sync.Mutex        // guards live
	live map[string]string // the site of each launch that is durable and has not ended
}

// order is a launch that is to be submitted, when it is durable.
type order struct{ site, launch string }

func newPilots() *pilots {
	return &pilots{rosters: map[string]*batch.Roster{}, live: map[string]string{}}
}

var (
	// epoch tells the launches of this process from those of any other.
	epoch = sync.OnceValue(func() string { return strconv.FormatInt(time.Now().UnixMicro(), 36) })
	// launched counts the launches of this process.
	launched atomic.Int64
)

// newLaunch is a name that is unique for ever.
func newLaunch(site string) string {
	return fmt.Sprintf("%s-%s.%d", site, epoch(), launched.Add(1))
}

// close ends the batch systems, with all pilots that are left, once.
func (p *pilots) close() {
	p.closing.Do(func() {
		var all sync.WaitGroup
		for _, r := range p.rosters {
			all.Go(func() { _ = r.Close() })
		}
		all.Wait()
	})
}

// none says that no pilot is there and none will come.
func (p *pilots) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.live) == 0
}

func (p *pilots) launches() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.live))
}

// start has durable launches submitted.
func (p *pilots) start(orders []order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range orders {
		if r := p.rosters[o.site]; r != nil {
			p.live[o.launch] = o.site
			r.Start(o.launch)
		}
	}
}

func (p *pilots) withdraw(launches []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range launches {
		if r := p.rosters[p.live[name]]; r != nil {
			r.Withdraw(name)
		}
	}
}

func (p *pilots) ended(launch string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, launch)
}

// adopt takes over the launches that are known from records. It returns those of
// which it is known at once that they have ended.
func (p *pilots) adopt(ctx context.Context, known []dispatch.LaunchView) (gone []batch.End, err error) {
	bySite := map[string][]string{}
	for _, l := range known {
		if p.rosters[l.Site] == nil {
			gone = append(gone, batch.End{Launch: l.Launch, Reason: fmt.Sprintf("the site %s is not one of this run", l.Site)})
			continue
		}
		bySite[l.Site] = append(bySite[l.Site], l.Launch)
		p.mu.Lock()
		p.live[l.Launch] = l.Site
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
		p.ended(end.Launch)
	}
	return gone, err
}

// pilotEnded tells dispatch of a pilot that its batch system no longer has.
func (s *Server) pilotEnded(end batch.End) {
	ctx := context.Background()
	_ = s.inbox.deliver(ctx, func() *request {
		return &request{dispatch: []dispatch.Input{dispatch.PilotEnded{Launch: end.Launch, Reason: end.Reason}}}
	})
	s.pilots.ended(end.Launch)
	_ = s.inbox.send(ctx, &request{}) // the loop may wait for the last one
}

// told notes what a batch system says.
func (s *Server) told(text string) {
	go func() {
		_ = s.inbox.send(context.Background(), &request{prepare: func(*state.Cores, *request) error {
			s.end.note(text)
			return nil
		}})
	}()
}
