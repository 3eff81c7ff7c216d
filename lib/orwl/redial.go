package orwl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"fairway/lib/orwl/internal/transport"
)

// firstPause is the longest pause before a connection is made again for the
// first time. Each further one may be twice as long, up to a quarter of the lease.
// The pauses are random, so that those who lost the same owner don't come together.
const firstPause = 20 * time.Millisecond

// longestPause bounds the pauses of those who wait for something to begin: Dial with
// patience, and a server that has no descriptors.
const longestPause = time.Second

// serveLinks serves the connection and those that follow it.
func (p *Peer) serveLinks(l *transport.Link) {
	defer close(p.over)
	defer p.close()
	for {
		p.fail(ended(l.Run()))
		if p.session != nil {
			p.session.end()
		}
		if p.redial == nil {
			return
		}
		next, err := p.reconnect(l)
		if err != nil {
			p.giveUp(err)
			return
		}
		l = next
		p.adopt(l)
	}
}

// reconnect dials until there is a connection or a lease has passed.
func (p *Peer) reconnect(lost *transport.Link) (*transport.Link, error) {
	ctx, cancel := context.WithTimeout(p.ctx, lost.Lease)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lost.Lease/4) {
		if err := nap(ctx, rand.N(pause)); err != nil {
			return nil, fmt.Errorf("no connection within the lease of %v: %w", lost.Lease, ErrLeaseLost)
		}
		l, err := p.redial(ctx)
		if err != nil {
			continue
		}
		if l.Process == p.other {
			return l, nil
		}
		l.Cut()
		return nil, fmt.Errorf("another process answers, so what this one had is gone: %w", ErrLeaseLost)
	}
}

func nap(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// adopt makes l the connection of the peer and opens the mirrors again. Their
// data comes anew.
func (p *Peer) adopt(l *transport.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bindLocked(l)
	p.err = nil
	for id, m := range p.mirrors {
		m.replica = newReplica(l)
		f := p.opening(id, m.name)
		f.OK = true
		l.Send(f)
	}
	if p.ctx.Err() != nil {
		l.Cut() // Close came between
	}
	close(p.restore)
	p.restore = make(chan struct{})
}

// giveUp says why there will be no connection any more, unless that is because of
// Close.
func (p *Peer) giveUp(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.err = err
	}
}

// Connected waits until there is a connection, and returns an error when there
// will be none any more. So a task that lost a lock to a connection that was cut knows
// when to request it again.
func (p *Peer) Connected(ctx context.Context) error {
	for {
		p.mu.Lock()
		err, restore := p.err, p.restore
		p.mu.Unlock()
		if err == nil {
			return nil
		}
		select {
		case <-restore:
		case <-p.over:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lostLocked says why what was held is lost.
func (p *Peer) lostLocked() error {
	if p.err != nil {
		return p.err
	}
	return errors.Join(errCut, ErrLeaseLost)
}

var errCut = errors.New("the connection was lost meanwhile")
