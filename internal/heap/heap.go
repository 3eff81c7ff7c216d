// Package heap says how far the heap of a process grows before the garbage collector looks at it. All
// of a process go by it, so that what one part sets for a time does not undo what another one has set.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// loadGrowth is by how much the heap may grow while the cores are loaded until the
// garbage collector looks at it, in percent. More than half of all that is made then stays:
// so it would look at all of it again and again, and the heap would end hardly smaller.
const loadGrowth = 1000

var loads struct {
	sync.Mutex     // guards what follows
	n, usually int // under way, and the percentage without them
}

// firstGrowth has garbage be collected for the first time when the heap has 32 MiB: the Go runtime
// would do so with 4 MiB, which a run of one job reaches several times. usualGrowth is that of the
// Go runtime, from then on.
const (
	firstGrowth = 800
	usualGrowth = 100
)

// CollectLate has a process that does little collect no garbage. It is called when the process begins;
// what is set after that stays.
func CollectLate() {
	debug.SetGCPercent(firstGrowth)
	runtime.AddCleanup(new(collected), func(int) { endFirst() }, 0)
}

// endFirst sets the usual growth unless another one was set.
func endFirst() {
	loads.Lock()
	defer loads.Unlock()
	if loads.n > 0 {
		if loads.usually == firstGrowth {
			loads.usually = usualGrowth
		}
		return
	}
	growth := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(growth); growth[0].Value.Uint64() == firstGrowth {
		debug.SetGCPercent(usualGrowth)
	}
}

// GrowFreely sets loadGrowth until the returned function is called. Any goroutine may call it.
func GrowFreely() (end func()) {
	loads.Lock()
	defer loads.Unlock()
	if loads.n++; loads.n == 1 {
		if loads.usually = debug.SetGCPercent(loadGrowth); loads.usually < 0 || loads.usually > loadGrowth {
			debug.SetGCPercent(loads.usually) // whoever set that wants even less
		}
	}
	return func() {
		loads.Lock()
		defer loads.Unlock()
		if loads.n--; loads.n == 0 {
			debug.SetGCPercent(loads.usually)
		}
	}
}

const maxGrowth = 400

var growths sync.Once

// KeepGrowth has the heap of this process grow by a percentage of what is in use until the garbage
// collector looks at it, and by so many bytes where that is more: a small heap would be looked at
// many times a second. What is said first counts, for good.
func KeepGrowth(percent int, bytes uint64) {
	growths.Do(func() { growBy(percent, bytes) })
}

// collected dies with the next collection. It is too large to share memory with what lives on.
type collected [64]byte

// growBy sets the percentage for the heap as it is now, and again after each collection.
func growBy(percent int, bytes uint64) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if n := live[0].Value.Uint64(); n > 0 {
		percent := max(percent, int(min(bytes*100/n, maxGrowth)))
		loads.Lock()
		if loads.n > 0 {
			loads.usually = percent
		} else {
			debug.SetGCPercent(percent)
		}
		loads.Unlock()
	}
	runtime.AddCleanup(new(collected), func(uint64) { growBy(percent, bytes) }, bytes)
}
