//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/gpu"
	"fairway/internal/provision"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// capacity is what this machine has for the jobs of a run, and among how many
// pilots it is divided.
type capacity struct {
	pilots int
	each   taskqueue.Resources // what one pilot has
	tools  []string            // that steps name, as far as they are found
	gpus   []gpu.Device        // of the machine, where a step needs some
	// findsTools says that jobs to come may name others.
	findsTools bool
}

// diskShare of what is free is for sandboxes: other programs write too, and a
// pilot that finds less than it is to have does not start.
const diskShare = 0.9

// memoryShare of the machine is for jobs; the rest is left to the system.
const memoryShare = 0.9

// capacityFor divides the machine among pilots: as many as are asked for, else
// one for each processor, or fewer where a step needs more than such a pilot
// would have.
func capacityFor(ctx context.Context, work *workflow.Workflow, o *runOptions) (*capacity, error) {
	whole, err := wholeMachine(o)
	if err != nil {
		return nil, err
	}
	c := &capacity{pilots: o.pilots}
	if c.gpus, err = gpusFor(ctx, work, o); err != nil {
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
		needs := func(d workflow.Demand) taskqueue.Resources { return d.Needs }
		c.pilots = taskqueue.PilotsFor(whole, console.Each(append(work.Demands(), o.demands...), needs))
	}
	c.each = whole.Share(c.pilots)
	return c, nil
}

// gpusFor finds the GPUs of this machine, if a step needs some.
func gpusFor(ctx context.Context, work *workflow.Workflow, o *runOptions) ([]gpu.Device, error) {
	needed := o.countable[quantity.GPU] > 0 || slices.ContainsFunc(work.Demands(),
		func(d workflow.Demand) bool { return d.Needs.Countable[quantity.GPU] > 0 || d.Needs.GPUShare > 0 })
	if !needed || !o.runsLocally() {
		return nil, nil
	}
	_, devices, err := gpu.Find(ctx)
	return devices, err
}

func wholeMachine(o *runOptions) (taskqueue.Resources, error) {
	memory, err := provision.MemoryOfMachine()
	if err != nil {
		return taskqueue.Resources{}, err
	}
	disk, err := diskOfSandboxes(o.folder)
	if err != nil {
		return taskqueue.Resources{}, err
	}
	return taskqueue.Resources{
		MilliCPUs: int64(runtime.NumCPU()) * 1000,
		Memory:    int64(float64(memory) * memoryShare),
		Disk:      int64(diskShare * float64(disk)),
		Countable: o.countable,
	}, nil
}

// diskOfSandboxes is how many bytes are free where attempts will run: their
// folder may be on a disk of its own.
func diskOfSandboxes(folder string) (int64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(filepath.Join(folder, console.StateFolder, "sandbox"), &disk)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Statfs(folder, &disk)
	}
	if err != nil {
		return 0, fmt.Errorf("free space in %s: %w", screen.DisplayPath(folder), err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil
}

func counts(settings []string) (map[string]int64, error) {
	values := map[string]int64{}
	for _, setting := range settings {
		name, text, _ := strings.Cut(setting, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || name == "" {
			return nil, console.Fail(console.ExitUsage, "write --has name=number, such as --has gpu=1",
				"--has %s gives no number", setting)
		}
		values[name] = n
	}
	return values, nil
}
