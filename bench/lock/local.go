package main

import (
	"context"
	"sync"

	"fairway/bench/measure"
	"fairway/lib/orwl"
)

var benchmarks = []benchmark{
	{"uncontended", uncontended},
	{"pair", pair},
	{"turns", turns},
	{"turns-sched", turnsSched},
	{"readers", readers},
	{"readers-only", readersOnly},
	{"remote", remote},
	{"remote-bulk", remoteBulk},
	{"shared", shared},
	{"shared-write", sharedWrite},
	{"threads", threads},
}

func rounds(quick bool) int {
	if quick {
		return 21
	}
	return 101
}

func location() *orwl.Location {
	l, err := orwl.New("bench", 8)
	if err != nil {
		panic(err)
	}
	return l
}

func mutexCycles(n int) {
	var m sync.RWMutex
	for range n {
		m.Lock()
		m.Unlock() //nolint:staticcheck // the empty section is what is measured
	}
}

func uncontended(quick bool) (measure.Row, error) {
	l, ctx := location(), context.Background()
	var h orwl.Handle
	return measure.Alternate("uncontended", rounds(quick), measure.Loop(200_000, func(n int) {
		for range n {
			h.WriteRequest(l)
			h.Acquire(ctx)
			h.Release()
		}
	}), measure.Loop(200_000, mutexCycles))
}

func pair(quick bool) (measure.Row, error) {
	l, ctx := location(), context.Background()
	var p orwl.Pair
	if err := p.WriteRequest(l); err != nil {
		return measure.Row{}, err
	}
	return measure.Alternate("pair", rounds(quick), measure.Loop(200_000, func(n int) {
		for range n {
			p.Acquire(ctx)
			p.Release()
		}
	}), measure.Loop(200_000, mutexCycles))
}

func turns(quick bool) (measure.Row, error) {
	return measure.Alternate("turns", rounds(quick),
		measure.Loop(20_000, func(n int) { lockTurns(context.Background(), n) }),
		measure.Loop(20_000, channelTurns))
}

// lockTurns lets two goroutines take n turns each.
func lockTurns(ctx context.Context, n int) {
	l := location()
	var p, q orwl.Pair
	p.WriteRequest(l)
	q.WriteRequest(l)
	var other sync.WaitGroup
	other.Go(func() { cycle(ctx, &q, n) })
	cycle(ctx, &p, n)
	other.Wait()
}

// cycle does n iterations of a pair.
func cycle(ctx context.Context, p *orwl.Pair, n int) {
	for range n {
		p.Acquire(ctx)
		p.Release()
	}
	p.Cancel()
}

func channelTurns(n int) {
	ping, pong := make(chan struct{}), make(chan struct{})
	go func() {
		for range ping {
			pong <- struct{}{}
		}
	}()
	for range n {
		ping <- struct{}{}
		<-pong
	}
	close(ping)
}

const readersPerRound = 64

// readers lets 64 tasks read between any two writes.
func readers(quick bool) (measure.Row, error) {
	const each = 300
	return measure.Alternate("readers", rounds(quick)/2,
		perReader(measure.Loop(each, lockReaders)),
		perReader(measure.Loop(each, mutexReaders)))
}

func perReader(f func() (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		ns, err := f()
		return ns / readersPerRound, err
	}
}

func lockReaders(n int) {
	l, ctx := location(), context.Background()
	var writer orwl.Pair
	writer.WriteRequest(l)
	pairs := make([]orwl.Pair, readersPerRound)
	for i := range pairs {
		pairs[i].ReadRequest(l)
	}
	var all sync.WaitGroup
	for i := range pairs {
		all.Go(func() { cycle(ctx, &pairs[i], n) })
	}
	cycle(ctx, &writer, n)
	all.Wait()
}

// mutexReaders does the same rounds with sync.RWMutex: every reader reads each
// version once, and the writer waits for all of them. The mutex alone does not
// order rounds, so it takes a condition and a WaitGroup.
func mutexReaders(n int) {
	var (
		m          sync.RWMutex
		version    int
		reads, all sync.WaitGroup
	)
	changed := sync.NewCond(m.RLocker())
	reads.Add(readersPerRound)
	for range readersPerRound {
		all.Go(func() {
			for seen := range n {
				m.RLock()
				for version == seen {
					changed.Wait()
				}
				m.RUnlock()
				reads.Done()
			}
		})
	}
	for i := range n {
		m.Lock()
		version++
		if i > 0 {
			reads.Add(readersPerRound)
		}
		m.Unlock()
		changed.Broadcast()
		reads.Wait()
	}
	all.Wait()
}

// together is how many readers read all the time, and nobody writes.
const together = 8

func readersOnly(quick bool) (measure.Row, error) {
	const each = 20_000
	l, ctx := location(), context.Background()
	var m sync.RWMutex
	perRead := func(reader func(n int)) func() (float64, error) {
		return measure.Loop(each*together, func(int) {
			var all sync.WaitGroup
			for range together {
				all.Go(func() { reader(each) })
			}
			all.Wait()
		})
	}
	return measure.Alternate("readers-only", rounds(quick), perRead(func(n int) {
		var h orwl.Handle
		for range n {
			h.ReadRequest(l)
			h.Acquire(ctx)
			h.Release()
		}
	}), perRead(func(n int) {
		for range n {
			m.RLock()
			m.RUnlock() //nolint:staticcheck // the empty section is what is measured
		}
	}))
}
