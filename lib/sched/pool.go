package sched

import (
	"context"
	"sync"
)

// pool bounds the threads that block in callbacks.
type pool struct {
	group sync.WaitGroup

	mu     sync.Mutex
	free   int
	queue  []pooled
	closed bool
}

type pooled struct {
	ctx context.Context
	f   func()
}

// run runs f on a thread of the pool. Without a free one it queues f if must is
// set, until ctx ends, and otherwise reports false.
func (p *pool) run(ctx context.Context, must bool, f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false
	case p.free > 0:
		p.free--
		p.group.Go(func() { p.work(f) })
		return true
	case must:
		p.queue = append(p.queue, pooled{ctx, f})
		return true
	}
	return false
}

// beside runs f on a goroutine that is not counted, and that close waits for. It reports false where
// all waits are about to end.
func (p *pool) beside(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.group.Go(f)
	}
	return !p.closed
}

// seize takes a thread of the pool for the calling goroutine, which gives it back
// by release or handOver.
func (p *pool) seize() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.free == 0 {
		return false
	}
	p.free--
	p.group.Add(1)
	return true
}

func (p *pool) release() {
	defer p.group.Done()
	p.passOn()
}

// passOn gives a thread of the pool to what is queued.
func (p *pool) passOn() {
	if f := p.next(); f != nil {
		p.group.Go(func() { p.work(f) })
	}
}

// handOver runs f on another goroutine in place of the caller.
func (p *pool) handOver(f func()) {
	defer p.group.Done()
	p.group.Go(func() { p.work(f) })
}

// work runs f and what is queued. Where a callback ends the goroutine, another takes its place.
func (p *pool) work(f func()) {
	defer func() {
		if f != nil {
			p.passOn()
		}
	}()
	for f != nil {
		f()
		f = p.next()
	}
}

// next gives the calling thread the oldest queued work that is still wanted.
func (p *pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		w := p.queue[0]
		p.queue[0] = pooled{}
		p.queue = p.queue[1:]
		if w.ctx.Err() == nil {
			return w.f
		}
	}
	p.free++
	return nil
}

// close refuses further work, drops what is queued and waits for the rest.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.queue = nil
	p.mu.Unlock()
	p.group.Wait()
}
