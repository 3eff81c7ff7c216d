//go:build !linux

package sched

import "time"

// napper sleeps more exactly than the runtime's timers; not on this system.
type napper struct{}

func newNapper() (*napper, error) { return nil, ErrUnsupported }

func (*napper) set(time.Duration) bool { return false }

func (*napper) wait() bool { return false }

func (*napper) close() {}
