//go:build !linux

package sched

import "time"

// napper sleeps for less than a millisecond; not on this system.
type napper struct{}

func newNapper() (*napper, error) { return nil, ErrUnsupported }

func (*napper) nap(time.Duration) bool { return false }

func (*napper) close() {}
