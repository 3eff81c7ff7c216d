package state

import (
	"runtime/debug"
	"sync"
)

// loadGrowth is by how much the heap may grow while the cores are loaded until the
// garbage collector looks at it, in percent. Nearly all that is made then stays, and what
// does not is about as much again: so it would look at all of it each time that it has
// doubled, and find nothing to free.
const loadGrowth = 400

var loads struct {
	sync.Mutex     // guards what follows
	n, usually int // under way, and the percentage without them
}

// growFreely sets loadGrowth until the returned function is called.
func growFreely() (end func()) {
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
