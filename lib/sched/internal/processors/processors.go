// Package processors says how many processors the process may use, and sets GOMAXPROCS for all who want
// some, since there is but one.
package processors

import (
	"os"
	"runtime"
	"sync"
)

// shared counts the Ps that the schedulers of the process want. GOMAXPROCS is raised to the most that
// one of them wants.
var shared struct {
	sync.Mutex
	wanted map[any]int
	before int  // what GOMAXPROCS was before the first
	own    bool // before was the runtime's own choice, which it keeps up to date
	set    int  // what it was set to
}

// Want sets how many Ps s wants, a pointer that stands for one scheduler; zero withdraws that. Setting GOMAXPROCS
// stops the world for a moment, so it is done only when it changes.
func Want(s any, n int) {
	shared.Lock()
	defer shared.Unlock()
	if n > 0 && len(shared.wanted) == 0 {
		shared.wanted = make(map[any]int)
		shared.before = runtime.GOMAXPROCS(0)
		shared.own = runtimesOwn(shared.before)
	}
	if n > 0 {
		shared.wanted[s] = n
	} else if shared.wanted[s] == 0 {
		return
	} else if delete(shared.wanted, s); len(shared.wanted) == 0 {
		restore()
		return
	}
	most := 0
	for _, n := range shared.wanted {
		most = max(most, n)
	}
	if runtime.GOMAXPROCS(0) != most {
		runtime.GOMAXPROCS(most)
	}
	shared.set = most
}

// Chosen is the GOMAXPROCS that a person has set, by the environment or
// in the program, or zero while it is the runtime's own.
func Chosen() int {
	shared.Lock()
	defer shared.Unlock()
	now := runtime.GOMAXPROCS(0)
	own := runtimesOwn(now)
	if len(shared.wanted) > 0 {
		now, own = shared.before, shared.own
	}
	if own {
		return 0
	}
	return now
}

// runtimesOwn reports whether the runtime, and no person, has set GOMAXPROCS to n.
func runtimesOwn(n int) bool {
	return os.Getenv("GOMAXPROCS") == "" && n == byDefault(runtime.NumCPU(), CgroupLimit())
}

// byDefault is what the runtime sets GOMAXPROCS to: no more than the
// limit of the cgroup, but two where there are two.
func byDefault(processors, limit int) int {
	if limit == 0 {
		return processors
	}
	return min(processors, max(2, limit))
}

// restore sets GOMAXPROCS to what it was, unless somebody has changed it
// since, and gives it back to the runtime's own updates if they had set it.
func restore() {
	switch {
	case runtime.GOMAXPROCS(0) != shared.set:
	case shared.own:
		runtime.SetDefaultGOMAXPROCS()
	default:
		runtime.GOMAXPROCS(shared.before)
	}
}
