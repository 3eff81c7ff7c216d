//go:build !linux

package sweep

import "time"

// processorTime returns how long f took; where another process ran meanwhile that is
// too much.
func processorTime(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
