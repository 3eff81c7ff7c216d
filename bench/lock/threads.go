package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"fairway/bench/measure"
	"fairway/lib/orwl"
)

const (
	manyLocations = 1_000
	manyHandles   = 10_000
	threadLimit   = 16
)

// serveHandles makes the locations of the row threads, and keeps each locked
// until it is told otherwise by its first request.
func serveHandles(s *orwl.Server) error {
	for i := range manyLocations {
		l, err := orwl.New(fmt.Sprint("many ", i), 8)
		if err != nil {
			return err
		}
		if err := new(orwl.Handle).WriteRequest(l); err != nil {
			return err
		}
		s.Add(l)
	}
	return nil
}

// threads counts the threads of this process while 10,000 handles wait.
func threads(bool) (measure.Row, error) {
	o, err := startOwner()
	if err != nil {
		return measure.Row{}, err
	}
	defer o.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	p, err := orwl.Dial(ctx, "tcp", o.tcp)
	if err != nil {
		cancel()
		return measure.Row{}, err
	}
	defer p.Close()
	var waiting sync.WaitGroup
	for i := range manyLocations {
		m, err := p.Mirror(ctx, fmt.Sprint("many ", i))
		if err != nil {
			cancel()
			return measure.Row{}, err
		}
		for range manyHandles / manyLocations {
			h := new(orwl.Handle)
			if err := h.ReadRequest(m); err != nil {
				cancel()
				return measure.Row{}, err
			}
			waiting.Go(func() { h.Acquire(ctx) })
		}
	}
	n, err := countThreads()
	cancel()
	waiting.Wait()
	r := measure.Row{Name: "threads", NS: n, Yardstick: threadLimit, Ratio: n / threadLimit, Note: "threads, not ns"}
	return r, err
}

func countThreads() (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Threads:"); ok {
			var n float64
			_, err := fmt.Sscan(rest, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("no count of threads in /proc/self/status")
}
