package sched

import (
	"context"
	"os"
	"os/signal"
	"sync"
)

// DefaultSignals bounds the signals that a [Signals] keeps while nobody waits;
// further ones are dropped, as the kernel does with all but the first.
const DefaultSignals = 16

// Signals is a subscription to signals of the operating system.
type Signals struct {
	h    *Handle[struct{}, os.Signal]
	ch   chan os.Signal
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	pending []os.Signal
	waiting []*Request[struct{}, os.Signal]
}

// Signals subscribes to the given signals, or to all. From then on they are kept
// until somebody waits for them, and don't have their default effect. Each goes
// to one waiter, in the order of the waits. Close ends the subscription.
func (s *Scheduler) Signals(signals ...os.Signal) *Signals {
	g := &Signals{ch: make(chan os.Signal, DefaultSignals), quit: make(chan struct{})}
	signal.Notify(g.ch, signals...)
	g.done.Go(g.relay)
	g.h = register(s, Kind[struct{}, os.Signal]{Name: "signal", Group: g.group}, g.end)
	return g
}

// Wait waits for the next signal.
func (g *Signals) Wait(ctx context.Context) (os.Signal, error) { return g.h.Wait(ctx, struct{}{}) }

// Close ends the subscription; signals have their default effect again, unless
// there is another one. Waits end with [ErrClosed].
func (g *Signals) Close() { g.h.Close() }

// end is called when nobody waits any more.
func (g *Signals) end() {
	signal.Stop(g.ch)
	close(g.quit)
	g.done.Wait()
}

func (g *Signals) relay() {
	for {
		select {
		case sig := <-g.ch:
			g.deliver(sig)
		case <-g.quit:
			return
		}
	}
}

// deliver gives sig to the first waiter that takes it, or keeps it.
func (g *Signals) deliver(sig os.Signal) {
	for {
		r := g.first(sig)
		if r == nil || r.Done(sig, nil) {
			return
		}
	}
}

// first takes the first waiter off, or keeps sig if there is none.
func (g *Signals) first(sig os.Signal) *Request[struct{}, os.Signal] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		r := g.waiting[0]
		g.waiting = g.waiting[1:]
		return r
	}
	if len(g.pending) < DefaultSignals {
		g.pending = append(g.pending, sig)
	}
	return nil
}

func (g *Signals) group(r *Request[struct{}, os.Signal], joined bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !joined {
		for i, w := range g.waiting {
			if w == r {
				g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
				return
			}
		}
		return
	}
	if len(g.pending) == 0 {
		g.waiting = append(g.waiting, r)
		return
	}
	if r.Done(g.pending[0], nil) {
		g.pending = g.pending[1:]
	}
}
