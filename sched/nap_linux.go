package sched

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, since the timers of the Go runtime are rounded up to
// milliseconds when all is idle. It reports whether it did.
func nap(d time.Duration) bool {
	ts := unix.NsecToTimespec(int64(d))
	return unix.Nanosleep(&ts, nil) == nil
}
