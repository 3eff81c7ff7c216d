package state

import (
	"runtime/debug"
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
