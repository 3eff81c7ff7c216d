//go:build !linux

package sched

import (
	"log/slog"
)

type priorities struct{}

func newPriorities(mode Priorities, log *slog.Logger) *priorities { return &priorities{} }

func (*priorities) react() {}

// thread stands for the thread of a task; its priority cannot be set here.
type thread struct{}

func (*thread) compute(*priorities) {}
func (*thread) react()              {}
func (*thread) mine() bool          { return true }

func threadCount() int { return 0 }
