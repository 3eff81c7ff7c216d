package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// firstGrowth has garbage be collected for the first time when the heap has 32 MiB: the Go runtime
	// would do so with 4 MiB, which a run of one job reaches several times.
	firstGrowth = 800
	// usualGrowth is that of the Go runtime, from then on.
	usualGrowth = 100
)

// collectLater has a process that does little collect no garbage, unless the environment variable
// GOGC says how much there may be. What the process sets itself stays.
func collectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstGrowth)
		afterCollection()
	}
}

// collected dies with the next collection. It is too large to share memory with what lives on.
type collected [64]byte

// afterCollection sets the usual growth after a collection, again after each: while a state is
// loaded another one is set for a time, and then what was before.
func afterCollection() {
	runtime.AddCleanup(new(collected), func(int) {
		growth := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		if metrics.Read(growth); growth[0].Value.Uint64() == firstGrowth {
			debug.SetGCPercent(usualGrowth)
		}
		afterCollection()
	}, 0)
}
