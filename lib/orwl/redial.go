package orwl

import (
	"context"
	"errors"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/transport"
)

// serveLinks serves the connection and those that follow it.
func (p *Peer) serveLinks(l *transport.Link) {
	defer close(p.over)
	defer p.close()
	for {
		p.fail(ended(l.Run()))
		if p.session != nil {
			p.session.End()
		}
		if p.redial == nil {
			return
		}
		next, err := distribution.Reconnect(p.ctx, l, p.redial)
		if err != nil {
			p.giveUp(err)
			return
		}
		l = next
		p.adopt(l)
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
		m.replica = distribution.NewReplica(l)
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
