package main

import (
	"context"
	"errors"
	"time"

	"fairway/bench/measure"
	"fairway/lib/orwl"
)

// touched is how many words of a location the rows of shared memory look at, each in
// a page of its own where there are as many pages.
const touched = 100

// shared touches one word of each of 100 pages spread over 1 GiB, and for the
// yardstick one word 100 times.
func shared(quick bool) (measure.Row, error) {
	return alternateShared("shared", quick, func(m *orwl.Mirror) func() (float64, error) {
		return grants(m, 100, nothing, touch)
	})
}

// sharedWrite does the same with writes, from request to release: what a write costs
// more than a read comes with the release.
func sharedWrite(quick bool) (measure.Row, error) {
	return alternateShared("shared-write", quick, writes)
}

// alternateShared compares 1 GiB with 8 bytes.
func alternateShared(name string, quick bool, round func(m *orwl.Mirror) func() (float64, error)) (measure.Row, error) {
	o, err := startOwner()
	if err != nil {
		return measure.Row{}, err
	}
	defer o.Stop()
	var rows [2]func() (float64, error)
	for i, name := range []string{"giant", "small"} {
		m, err := opened("unix", o.unix, name)
		if err != nil {
			return measure.Row{}, err
		}
		rows[i] = round(m)
	}
	return measure.Alternate(name, rounds(quick), rows[0], rows[1])
}

func touch(h *orwl.Handle) error {
	words, err := orwl.ReadAs[uint64](h)
	if err != nil {
		return err
	}
	step, sum := len(words)/touched, uint64(0)
	for i := range touched {
		sum += words[i*step]
	}
	if sum != 0 {
		return errors.New("somebody wrote into the location")
	}
	return nil
}

// writes measures whole cycles that increment words, and looks whether the increments
// of the cycle before are there.
func writes(m *orwl.Mirror) func() (float64, error) {
	const cycles = 20
	var h orwl.Handle
	ctx, turn := context.Background(), uint64(0)
	cycle := func() error {
		if err := errors.Join(h.WriteRequest(m), h.Acquire(ctx)); err != nil {
			return err
		}
		words, err := orwl.WriteAs[uint64](&h)
		if err != nil {
			return err
		}
		step := len(words) / touched
		for i := range touched {
			words[i*step]++
		}
		if turn++; words[0] != turn && words[0] != turn*touched {
			return errors.New("a write was lost")
		}
		return h.Release()
	}
	return func() (float64, error) {
		start := time.Now()
		for range cycles {
			if err := cycle(); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start)) / cycles, nil
	}
}
