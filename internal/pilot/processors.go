package pilot

import (
	"os"
	"runtime"
)

// SlotsPerProcessor is for how many of its processors a pilot uses one itself,
// at least one, to stage and to report; and one more while a command has run
// for longer than [WatchInterval]. The environment variable GOMAXPROCS overrides
// it.
const SlotsPerProcessor = 8

// useProcessors sets on how many processors the pilot itself runs at once.
// Among short commands few are better: on more, the pilot is woken on the one
// that a command is about to use. Beside a command that computes one more is
// needed: while the pilot starts another, whose first steps wait for their turn
// then, the runtime can run nothing else on the same processor.
func (cfg *Config) useProcessors(computing bool) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	n := int(max(1, cfg.MilliCPUs/1000/SlotsPerProcessor))
	if computing {
		n++
	}
	if runtime.GOMAXPROCS(0) != n {
		runtime.GOMAXPROCS(n) // stops the world for a moment
	}
}
