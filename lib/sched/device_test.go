package sched

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/lib/seed"
)

type (
	deviceRequest = Request[int, int]
	deviceKind    = Kind[int, int]
)

// device is a polled and blocking source of events by number. It wakes up a
// blocked thread only for events that come while it is armed, which is what
// makes the arm step necessary, and it checks that callbacks keep their rules.
type device struct {
	t    *testing.T
	rand func(n int) int // safe for concurrent use
	tell bool            // Arm tells of events that came since the last poll

	callbacks atomic.Int32
	blocked   atomic.Bool
	exclusive bool

	mu    sync.Mutex
	ready map[int]bool
	over  map[int]bool // nobody will wait for it any more
	group map[*deviceRequest]bool
	armed bool
	wake  chan struct{} // cap 1
	stop  chan struct{} // cap 1
}

func newDevice(t *testing.T, random func(int) int) *device {
	return &device{
		t: t, rand: random, ready: make(map[int]bool), over: make(map[int]bool), group: make(map[*deviceRequest]bool),
		wake: make(chan struct{}, 1), stop: make(chan struct{}, 1),
	}
}

// enter checks that no two callbacks run at the same time.
func (d *device) enter() func() {
	if d.callbacks.Add(1) != 1 {
		d.t.Error("callbacks run at the same time")
	}
	return func() { d.callbacks.Add(-1) }
}

// happen makes the event n come.
func (d *device) happen(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over[n] {
		return
	}
	d.ready[n] = true
	if d.armed {
		d.armed = false
		signalOnce(d.wake)
	}
}

// forget drops the event n, which has been seen or will not be.
func (d *device) forget(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over[n] = true
	delete(d.ready, n)
}

func signalOnce(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (d *device) poll(waiting []*deviceRequest) {
	defer d.enter()()
	d.jitter()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range waiting {
		if !d.group[r] {
			d.t.Error("polled for a request that is not in the group")
		}
		if d.ready[r.Value] && r.Done(r.Value, nil) {
			delete(d.ready, r.Value)
		}
	}
}

func (d *device) regroup(r *deviceRequest, joined bool) {
	defer d.enter()()
	if d.exclusive && d.blocked.Load() {
		d.t.Error("group changed during a block")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.group[r] == joined {
		d.t.Errorf("group told twice: joined %v", joined)
	}
	if joined {
		d.group[r] = true
		return
	}
	delete(d.group, r)
}

func (d *device) arm() bool {
	defer d.enter()()
	d.jitter()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = true
	return !d.tell || len(d.ready) == 0
}

func (d *device) block(limit time.Duration) {
	d.blocked.Store(true)
	defer d.blocked.Store(false)
	d.jitter()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-d.wake:
	case <-d.stop:
	case <-timeout:
	}
}

func (d *device) unblock() { signalOnce(d.stop) }

// jitter lets others run, or not.
func (d *device) jitter() {
	for range d.rand(3) {
		yieldProcessor()
	}
}

func (d *device) kind(strategy Strategy, concurrent bool) deviceKind {
	d.exclusive = !concurrent
	return deviceKind{
		Name: "device", Poll: d.poll, Group: d.regroup, Arm: d.arm, Block: d.block, Unblock: d.unblock,
		Concurrent: concurrent, Strategy: strategy, Interval: 100 * time.Microsecond,
	}
}

// seeded returns a random source that is safe for concurrent use.
func seeded(t *testing.T) func(n int) int {
	r := seed.Source(t)
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}
