package sweep

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns how long f ran on a processor. Time in which the
// operating system let another process run does not count.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	f()
	return threadTime() - start
}

func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
