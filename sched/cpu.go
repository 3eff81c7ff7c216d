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
	before int // what GOMAXPROCS was before the first
}

// wantProcessors sets what s wants; zero withdraws its wish. Setting GOMAXPROCS
// stops the world for a moment, so it is done only when it changes.
func (s *Scheduler) wantProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	if len(processors.wanted) == 0 {
		processors.wanted = make(map[*Scheduler]int)
		processors.before = runtime.GOMAXPROCS(0)
	}
	if n > 0 {
		processors.wanted[s] = n
	} else {
		delete(processors.wanted, s)
	}
	if len(processors.wanted) == 0 {
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
}

// chosenProcessors is the GOMAXPROCS that a person has set, by the environment or
// in the program, or zero while it is the runtime's own.
func chosenProcessors() int {
	processors.Lock()
	defer processors.Unlock()
	now := runtime.GOMAXPROCS(0)
	if len(processors.wanted) > 0 {
		now = processors.before
	}
	if os.Getenv("GOMAXPROCS") == "" && now == defaultProcessors(runtime.NumCPU(), cgroupLimit()) {
		return 0
	}
	return now
}

// defaultProcessors is what the runtime sets GOMAXPROCS to: no more than the
// limit of the cgroup, but two where there are two.
func defaultProcessors(processors, limit int) int {
	if limit == 0 {
		return processors
	}
	return min(processors, max(2, limit))
}

// restoreProcessors gives GOMAXPROCS back to the runtime's own updates, unless a
// person has set it.
func restoreProcessors() {
	if os.Getenv("GOMAXPROCS") != "" {
		runtime.GOMAXPROCS(processors.before)
		return
	}
	runtime.SetDefaultGOMAXPROCS()
}
