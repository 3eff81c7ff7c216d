//go:build unix

package orwl

import (
	"testing"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/seed"
)

// Of processes that map the memory and processes that have copies some are killed in
// the middle of their writing. The others, and a goroutine, go on, and no half of a
// write is visible.
func TestMixedProcessesKilledAtRandom(t *testing.T) {
	rng := seed.Source(t)
	l := newLocation(t, "l", 4*memory.BlockSize, Shared())
	s := new(Server)
	s.Add(l)
	t.Cleanup(s.Close)
	addresses := map[string]string{}
	for _, network := range []string{"unix", "tcp"} {
		listener := listen(t, network)
		addresses[network] = listener.Addr().String()
		go s.Serve(listener)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- countUntil(l, stop) }()
	for round := range rounds(4) {
		maps := startChild(t, "count", "unix", addresses["unix"])
		copies := startChild(t, "count", "tcp", addresses["tcp"])
		maps.line(t)
		copies.line(t)
		first, second := maps, copies
		if round%2 == 1 {
			first, second = copies, maps
		}
		for _, c := range []childProcess{first, second} {
			until := l.Version() + uint64(rng.IntN(40))
			waitFor(t, func() bool { return l.Version() > until })
			c.Kill()
		}
		checkCounts(t, read(t, l))
	}
	close(stop)
	must(t, <-stopped)
}

// countUntil increments all counters of a location again and again.
func countUntil(r Resource, stop <-chan struct{}) error {
	var h Handle
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := countOnce(&h, r); err != nil {
			return err
		}
	}
}
