package pilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"fairway/internal/program"
	"fairway/internal/quantity"
)

// lifeMargin is kept of a time limit that the batch system tells, for what comes
// between its start of the job and that of the pilot.
const lifeMargin = 10 * time.Second

// takeAllotment has the pilot use what the batch system allotted to its job on this
// node, where the settings say nothing: not the whole machine, of which the rest may
// belong to others.
func (c *Config) takeAllotment(ctx context.Context, environment func(string) string) {
	number := func(names ...string) int64 {
		for _, name := range names {
			if n, err := quantity.Whole(environment(name)); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	const mib = 1 << 20
	cpus := number("SLURM_CPUS_ON_NODE", "NSLOTS", "PBS_NCPUS", "NCPUS", "LSB_DJOB_NUMPROC")
	slot := slotOf(environment("_CONDOR_MACHINE_AD"))
	cpus = cmp.Or(cpus, slot["Cpus"])
	c.MilliCPUs = cmp.Or(c.MilliCPUs, cpus*1000)
	c.Memory = cmp.Or(c.Memory, slot["Memory"]*mib/10*9)
	c.Memory = cmp.Or(c.Memory, cmp.Or(number("SLURM_MEM_PER_NODE"), number("SLURM_MEM_PER_CPU")*cpus)*mib/10*9)
	if job := environment("SLURM_JOB_ID"); job != "" {
		c.Life = cmp.Or(c.Life, lifeOf(slurmTimeLeft(ctx, job)))
	}
}

// maxSlotFile bounds what is read of the description of a slot, in bytes.
const maxSlotFile = 1 << 20

// slotOf are the numbers in the file in which HTCondor describes the slot of a job; none where there
// is no such file.
func slotOf(path string) map[string]int64 {
	numbers := map[string]int64{}
	if path == "" {
		return numbers
	}
	file, err := os.Open(path)
	if err != nil {
		return numbers
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, maxSlotFile)) // what could be read counts
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		if n, err := quantity.Whole(strings.TrimSpace(value)); err == nil && n > 0 {
			numbers[strings.TrimSpace(name)] = n
		}
	}
	return numbers
}

func lifeOf(left time.Duration) time.Duration {
	if left <= 0 {
		return 0
	}
	return max(left-lifeMargin, time.Second)
}

// slurmTimeLeft is what is left of a job's time, as a duration: nobody's clock matters.
// It is 0 where that is not known, or unlimited.
func slurmTimeLeft(ctx context.Context, job string) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	squeue := exec.CommandContext(ctx, "squeue", "--noheader", "--jobs="+job, "--format=%L")
	squeue.WaitDelay = time.Second // what a wrapper has started may hold its pipes
	out, err := squeue.Output()
	if err != nil {
		return 0
	}
	return quantity.ClockTime(string(out))
}

// onNode puts the variables of the node into the folders of the settings. TMPDIR is
// /tmp where it is not set.
func (c *Config) onNode(environment func(string) string) error {
	var missing error
	for _, path := range []*string{&c.Scratch, &c.SandboxDir, &c.Cache.Dir} {
		*path = os.Expand(*path, func(name string) string {
			value := environment(name)
			switch {
			case value == "" && name == "TMPDIR":
				return os.TempDir()
			case value == "":
				missing = fmt.Errorf("pilot configuration: the variable %s of %q is not set on this node; change scratch of "+
					"the site", name, *path)
			}
			return value
		})
	}
	return missing
}

func (c *Config) runCheck() error {
	if c.Check == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	check := exec.CommandContext(ctx, "/bin/sh", "-c", c.Check)
	check.WaitDelay = time.Second
	began := time.Now()
	out, err := check.CombinedOutput()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // what it has started may go on
		return nil
	}
	err = program.Failure(ctx, began, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if said := lines[len(lines)-1]; said != "" {
		return fmt.Errorf("the check of the site failed: %w: %s", err, said)
	}
	return fmt.Errorf("the check of the site failed: %w: %s", err, c.Check)
}

const checkTime = time.Minute
