package sched

import (
	"sync/atomic"
	"time"
)

type stats struct {
	name   string
	polls  atomic.Uint64
	blocks atomic.Uint64
}

func newStats(name string) *stats { return &stats{name: name} }

func (st *stats) detected(e *entry) {}
func (st *stats) queued(e *entry)   {}
func (st *stats) ran(time.Duration) {}
