package sched

import (
	"os"
	"runtime"
	"sync"
)

// processors counts the Ps that the schedulers of the process want, since there
// is but one GOMAXPROCS. It is raised to the most that one of them wants.
var processors struct {
	sync.Mutex
	wanted map[*Scheduler]int
	before int  // what GOMAXPROCS was before the first
	own    bool // before was the runtime's own choice, which it keeps up to date
	set    int  // what it was set to
}

// wantProcessors sets what s wants; zero withdraws that. Setting GOMAXPROCS
// stops the world for a moment, so it is done only when it changes.
func (s *Scheduler) wantProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	if n > 0 && len(processors.wanted) == 0 {
		processors.wanted = make(map[*Scheduler]int)
		processors.before = runtime.GOMAXPROCS(0)
		processors.own = runtimesOwn(processors.before)
	}
	if n > 0 {
		processors.wanted[s] = n
	} else if processors.wanted[s] == 0 {
		return
	} else if delete(processors.wanted, s); len(processors.wanted) == 0 {
		restoreProcessors()
		return
	}
	most := 0
	for _, n := range processors.wanted {
		most = max(most, n)
	}
	if runtime.GOMAXPROCS(0) != most {
		runtime.GOMAXPROCS(most)
	}
	processors.set = most
}

// chosenProcessors is the GOMAXPROCS that a person has set, by the environment or
// in the program, or zero while it is the runtime's own.
func chosenProcessors() int {
	processors.Lock()
	defer processors.Unlock()
	now := runtime.GOMAXPROCS(0)
	own := runtimesOwn(now)
	if len(processors.wanted) > 0 {
		now, own = processors.before, processors.own
	}
	if own {
		return 0
	}
	return now
}

// runtimesOwn reports whether the runtime, and no person, has set GOMAXPROCS to n.
func runtimesOwn(n int) bool {
	return os.Getenv("GOMAXPROCS") == "" && n == defaultProcessors(runtime.NumCPU(), cgroupLimit())
}

// defaultProcessors is what the runtime sets GOMAXPROCS to: no more than the
// limit of the cgroup, but two where there are two.
func defaultProcessors(processors, limit int) int {
	if limit == 0 {
		return processors
	}
	return min(processors, max(2, limit))
}

// restoreProcessors sets GOMAXPROCS to what it was, unless somebody has changed it
// since, and gives it back to the runtime's own updates if they had set it.
func restoreProcessors() {
	switch {
	case runtime.GOMAXPROCS(0) != processors.set:
	case processors.own:
		runtime.SetDefaultGOMAXPROCS()
	default:
		runtime.GOMAXPROCS(processors.before)
	}
}
