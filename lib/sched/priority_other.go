//go:build !linux

package sched

import (
	"log/slog"
	"time"
)

type priorities struct{}

func newPriorities(mode Priorities, log *slog.Logger) *priorities { return &priorities{} }

func (*priorities) react()        {}
func (*priorities) rest()         {}
func (*priorities) threads() bool { return false }

// thread stands for the thread of a task; its priority cannot be set here.
type thread struct{}

func (*thread) compute(*priorities, bool)         {}
func (*thread) mark()                             {}
func (*thread) react()                            {}
func (*thread) leave()                            {}
func (*thread) spent(time.Duration) time.Duration { return allOfIt }
func (*thread) mine() bool                        { return false }

func (*thread) account() (a account, ok bool) { return a, false }

func threadCount() int { return 0 }
