package pilot

import (
	"maps"
	"os"
	"runtime"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// wholeCPU is what a job that states no processors takes, or all if there is less.
const wholeCPU = 1000

// resources are amounts; what a job needs is taken from what is free.
type resources struct {
	milliCPUs, memory, disk int64
	countable               map[string]int64 // in thousandths
}

// needsOf is what an attempt takes, never more processors than the pilot has.
func needsOf(a *wire.Assignment, has *resources) resources {
	n := a.GetNeeds()
	r := resources{n.GetMilliCpus(), n.GetMemoryBytes(), n.GetDiskBytes(), inThousandths(n.GetCountable())}
	if share := n.GetGpuShare(); share > 0 {
		r.countable[quantity.GPU] += share
	}
	if r.milliCPUs == 0 {
		r.milliCPUs = min(wholeCPU, has.milliCPUs)
	}
	return r
}

func (r *resources) fits(need *resources) bool {
	if need.milliCPUs > r.milliCPUs || need.memory > r.memory || need.disk > r.disk {
		return false
	}
	for name, n := range need.countable {
		if n > r.countable[name] {
			return false
		}
	}
	return true
}

// processing is what a command gives back when it has ended; the disk holds
// what it has written.
func (r *resources) processing() *resources {
	return &resources{milliCPUs: r.milliCPUs, memory: r.memory, countable: r.countable}
}

func (r *resources) slots() int { return max(1, int(r.milliCPUs/wholeCPU)) }

// add gives need back (sign 1) or takes it (sign -1).
func (r *resources) add(need *resources, sign int64) {
	r.milliCPUs += sign * need.milliCPUs
	r.memory += sign * need.memory
	r.disk += sign * need.disk
	for name, n := range need.countable {
		r.countable[name] += sign * n
	}
}

func (r *resources) clone() resources {
	c := *r
	c.countable = maps.Clone(r.countable)
	return c
}

func (c *Config) resources() resources {
	return resources{c.MilliCPUs, c.Memory, c.Disk, inThousandths(c.Countable)}
}

// inThousandths makes numbers comparable with shares.
func inThousandths(counts map[string]int64) map[string]int64 {
	made := make(map[string]int64, len(counts))
	for name, n := range counts {
		made[name] = n * quantity.WholeGPU
	}
	return made
}

func (c *Config) resourcesToWire() *wire.Resources {
	r := &wire.Resources{MilliCpus: c.MilliCPUs, MemoryBytes: c.Memory, DiskBytes: c.Disk, Countable: c.Countable}
	if c.Life > 0 {
		r.Time = durationpb.New(c.Life)
	}
	return r
}

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
func (c *Config) useProcessors(computing bool) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	n := int(max(1, c.MilliCPUs/1000/SlotsPerProcessor))
	if computing {
		n++
	}
	if runtime.GOMAXPROCS(0) != n {
		runtime.GOMAXPROCS(n) // stops the world for a moment
	}
}
