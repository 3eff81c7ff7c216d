//go:build !linux

package sched

import "time"

// nap does nothing: the timers of the runtime have to do.
func nap(time.Duration) bool { return false }
