package taskqueue

import (
	"math"
	"time"

	"fairway/internal/quantity"
)

// PilotsFor is among how many pilots a machine is divided: one for each processor, or fewer where a
// job with one of the needs would not fit into the share of one; at least one.
func PilotsFor(machine Resources, needs []Resources) int {
	pilots := max(1, machine.MilliCPUs/1000)
	for _, n := range needs {
		pilots = min(pilots, times(machine.MilliCPUs, n.MilliCPUs), times(machine.Memory, n.Memory),
			times(machine.Disk, n.Disk))
		for name, count := range n.Countable {
			pilots = min(pilots, times(machine.Countable[name], count))
		}
		if n.GPUShare > 0 { // pilots have whole ones
			pilots = min(pilots, times(machine.Countable[quantity.GPU], 1))
		}
	}
	return int(pilots)
}

// times is how often a need fits, at least once.
func times(whole, need int64) int64 {
	if need <= 0 {
		return math.MaxInt64
	}
	return max(1, whole/need)
}

// Share is what each of so many pilots has of a machine: memory, disk and countable things are
// divided, so that the jobs of all together fit. Each has a processor at least. Times are not
// shared. Pilots is positive.
func (machine Resources) Share(pilots int) Resources {
	n := int64(pilots)
	share := Resources{
		MilliCPUs: max(1000, machine.MilliCPUs/n), Memory: machine.Memory / n, Disk: machine.Disk / n,
		Countable: make(map[string]int64, len(machine.Countable)),
	}
	for name, count := range machine.Countable {
		share.Countable[name] = count / n
	}
	return share
}

// Resources is what a job needs or what a pilot has. The zero value of a need
// means that any pilot will do.
type Resources struct {
	MilliCPUs int64            // thousandths of a processor
	Memory    int64            // bytes
	Disk      int64            // bytes in the sandbox
	Time      time.Duration    // wall clock; of a pilot: its remaining life, 0 for unlimited
	Countable map[string]int64 // whatever else a site names: gpu, licence
	// GPUShare is what a job needs of one GPU that others may share, in thousandths, below 1000.
	// Whole ones are among Countable, as quantity.GPU, and beside them there is no share. Pilots have
	// whole ones only.
	GPUShare int64
}
