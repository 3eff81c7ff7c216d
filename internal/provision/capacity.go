//go:build linux

package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/gpu"
	"fairway/internal/quantity"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
)

// capacity is what this machine has for the jobs of a run, and among how many
// pilots it is divided.
type capacity struct {
	pilots int
	each   taskqueue.Resources // what one pilot has
	tools  []string            // that steps name, as far as they are found
	gpus   []gpu.Device        // of the machine, where a step needs some
}

// diskShare of what is free is for sandboxes: other programs write too, and a
// pilot that finds less than it is to have does not start.
const diskShare = 0.9

// memoryShare of the machine is for jobs; the rest is left to the system.
const memoryShare = 0.9

// capacity divides the machine among pilots: as many as are asked for, else
// one for each processor, or fewer where a step needs more than such a pilot
// would have.
func (p *plan) capacity(ctx context.Context) (*capacity, error) {
	whole, err := p.wholeMachine()
	if err != nil {
		return nil, err
	}
	c := &capacity{pilots: p.Pilots}
	if c.gpus, err = p.findGPUs(ctx); err != nil {
		return nil, err
	}
	if n := int64(len(c.gpus)); n > 0 {
		whole.Countable = maps.Clone(whole.Countable)
		if whole.Countable == nil {
			whole.Countable = map[string]int64{}
		}
		if _, said := whole.Countable[quantity.GPU]; !said {
			whole.Countable[quantity.GPU] = n
		}
	}
	if c.pilots == 0 {
		var needs []taskqueue.Resources
		for _, d := range slices.Concat(p.demands, p.Demands) {
			needs = append(needs, d.Needs)
		}
		c.pilots = taskqueue.PilotsFor(whole, needs)
	}
	c.each = whole.Share(c.pilots)
	return c, nil
}

// findGPUs finds the GPUs of this machine, if a step needs some.
func (p *plan) findGPUs(ctx context.Context) ([]gpu.Device, error) {
	needed := p.Has[quantity.GPU] > 0 || slices.ContainsFunc(p.demands,
		func(d workflow.Demand) bool { return d.Needs.Countable[quantity.GPU] > 0 || d.Needs.GPUShare > 0 })
	if !needed || !p.runsLocally() {
		return nil, nil
	}
	_, devices, err := gpu.Find(ctx)
	return devices, err
}

func (p *plan) wholeMachine() (taskqueue.Resources, error) {
	memory, err := MemoryOfMachine()
	if err != nil {
		return taskqueue.Resources{}, err
	}
	disk, err := p.diskOfSandboxes()
	if err != nil {
		return taskqueue.Resources{}, err
	}
	return taskqueue.Resources{
		MilliCPUs: int64(runtime.NumCPU()) * 1000,
		Memory:    int64(float64(memory) * memoryShare),
		Disk:      int64(diskShare * float64(disk)),
		Countable: p.Has,
	}, nil
}

// diskOfSandboxes is how many bytes are free where attempts will run: their
// folder may be on a disk of its own.
func (p *plan) diskOfSandboxes() (int64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(filepath.Join(p.config.Folder, folder.StateFolder, "sandbox"), &disk)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Statfs(p.config.Folder, &disk)
	}
	if err != nil {
		return 0, fmt.Errorf("free space in %s: %w", p.Shown(p.config.Folder), err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil
}
