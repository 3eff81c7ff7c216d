package allocation

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fairway/internal/program"
	"fairway/internal/quantity"
)

// Kind is a batch system that has given an allocation.
type Kind string

// The batch systems whose jobs are known.
const (
	Slurm      Kind = "slurm"
	GridEngine Kind = "gridengine"
	PBS        Kind = "pbs"
)

// Node is one of an allocation.
type Node struct {
	Name string
	CPUs int64 // that the job has there
}

// Allocation is a job of a batch system with its nodes, in which this process runs.
type Allocation struct {
	Kind  Kind
	Job   string
	Nodes []Node

	end     time.Time // by the clock of this machine; zero: it has none, or none is known
	overlap bool      // srun knows --overlap
}

// ErrNone says that this process runs in no allocation.
var ErrNone = errors.New("this is not inside a job of Slurm, Grid Engine or PBS")

// Find tells the allocation of this process from its environment. It asks the batch
// system what is left of its time.
func Find(ctx context.Context) (*Allocation, error) {
	return find(os.Getenv, func(argv ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.WaitDelay = time.Second // what a wrapper has started may hold its pipes
		began := time.Now()
		out, err := cmd.Output()
		return string(out), program.Failure(ctx, began, err)
	})
}

// askTime bounds one question to a batch system.
const askTime = 20 * time.Second

func find(environment func(string) string, ask func(argv ...string) (string, error)) (a *Allocation, err error) {
	left := time.Duration(0)
	switch {
	case environment("SLURM_JOB_ID") != "":
		a, left, err = findSlurm(environment, ask)
	case environment("PE_HOSTFILE") != "" || environment("SGE_ROOT") != "" && environment("JOB_ID") != "":
		a, left, err = findGridEngine(environment, ask)
	case environment("PBS_NODEFILE") != "":
		a, left, err = findPBS(environment, ask)
	default:
		return nil, ErrNone
	}
	if err == nil && len(a.Nodes) == 0 {
		err = errors.New("it has no nodes")
	}
	if err != nil {
		return nil, fmt.Errorf("the nodes of this job cannot be told: %w", err)
	}
	if left > 0 {
		a.end = time.Now().Add(left)
	}
	return a, nil
}

func findSlurm(
	environment func(string) string, ask func(argv ...string) (string, error),
) (*Allocation, time.Duration, error) {
	a := &Allocation{Kind: Slurm, Job: environment("SLURM_JOB_ID")}
	names,
		err := ask("scontrol", "show", "hostnames", cmp.Or(environment("SLURM_JOB_NODELIST"), environment("SLURM_NODELIST")))
	if err != nil {
		return nil, 0, fmt.Errorf("scontrol show hostnames: %w", err)
	}
	cpus, err := slurmCPUs(environment("SLURM_JOB_CPUS_PER_NODE"))
	if err != nil {
		return nil, 0, err
	}
	for i, name := range strings.Fields(names) {
		node := Node{Name: name, CPUs: 1}
		if len(cpus) > 0 {
			node.CPUs = cpus[min(i, len(cpus)-1)]
		}
		a.Nodes = append(a.Nodes, node)
	}
	help, _ := ask("srun", "--help") // before 20.11, steps overlapped by themselves
	a.overlap = strings.Contains(help, "--overlap")
	left, err := ask("squeue", "--noheader", "--jobs="+a.Job, "--format=%L")
	if err != nil {
		return a, 0, nil // the pilots learn it when it ends
	}
	return a, quantity.ClockTime(left), nil
}

var slurmRun = regexp.MustCompile(`^(\d+)(?:\(x(\d+)\))?$`)

// maxNodes bounds the nodes of an allocation.
const maxNodes = 100_000

// slurmCPUs reads processors of nodes as Slurm writes them: 16(x3),8.
func slurmCPUs(text string) (cpus []int64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		match := slurmRun.FindStringSubmatch(part)
		if match == nil {
			return nil, fmt.Errorf("SLURM_JOB_CPUS_PER_NODE is %q", text)
		}
		n, _ := strconv.ParseInt(match[1], 10, 64)
		times, _ := strconv.Atoi(cmp.Or(match[2], "1"))
		if times > maxNodes || len(cpus)+times > maxNodes || n < 1 {
			return nil, fmt.Errorf("SLURM_JOB_CPUS_PER_NODE is %q", text)
		}
		for range times {
			cpus = append(cpus, n)
		}
	}
	return cpus, nil
}

func findGridEngine(
	environment func(string) string, ask func(argv ...string) (string, error),
) (*Allocation, time.Duration, error) {
	a := &Allocation{Kind: GridEngine, Job: environment("JOB_ID")}
	if file := environment("PE_HOSTFILE"); file != "" {
		// HOST SLOTS QUEUE PROCESSORS
		err := eachLine(file, func(fields []string) error {
			if len(fields) < 2 {
				return fmt.Errorf("%s has the line %q", file, strings.Join(fields, " "))
			}
			slots, err := quantity.Whole(fields[1])
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			a.add(fields[0], slots)
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	} else {
		host, err := os.Hostname()
		if err != nil {
			return nil, 0, err
		}
		a.add(host, 1)
	}
	details, err := ask("qstat", "-j", a.Job)
	if err != nil {
		return a, 0, nil
	}
	running, err := ask("qstat", "-xml", "-s", "r")
	if err != nil {
		return a, 0, nil
	}
	return a, gridEngineLeft(a.Job, details, running, time.Now()), nil
}

var (
	hardLimit = regexp.MustCompile(`(?m)^hard[_ ]resource_list:.*\bh_rt=(\d+)`)
	startTime = regexp.MustCompile(`(?s)<JB_job_number>(\d+)</JB_job_number>.*?<JAT_start_time>([^<]*)</JAT_start_time>`)
)

// gridEngineLeft is what is left of a job, from what qstat says; 0 where that is not told.
func gridEngineLeft(job, details, running string, now time.Time) time.Duration {
	limit := hardLimit.FindStringSubmatch(details)
	if limit == nil {
		return 0
	}
	seconds, err := strconv.ParseInt(limit[1], 10, 32)
	if err != nil {
		return 0
	}
	for _, match := range startTime.FindAllStringSubmatch(running, -1) {
		if match[1] != job {
			continue
		}
		began, err := time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSuffix(match[2], "Z"), time.Local)
		if err != nil {
			return 0
		}
		ran := min(max(now.Sub(began), 0), time.Duration(seconds)*time.Second) // the clocks may differ
		return max(time.Duration(seconds)*time.Second-ran, time.Second)
	}
	return 0
}

func findPBS(
	environment func(string) string, ask func(argv ...string) (string, error),
) (*Allocation, time.Duration, error) {
	a := &Allocation{Kind: PBS, Job: environment("PBS_JOBID")}
	err := eachLine(environment("PBS_NODEFILE"), func(fields []string) error {
		a.add(fields[0], 1)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	// The file names a node once for each of its processes, which may have several
	// processors.
	if n, err := quantity.Whole(environment("NCPUS")); err == nil {
		for i := range a.Nodes {
			a.Nodes[i].CPUs = max(a.Nodes[i].CPUs, n)
		}
	}
	details, err := ask("qstat", "-f", a.Job)
	if err != nil {
		return a, 0, nil
	}
	return a, pbsLeft(details), nil
}

var (
	wallTime = regexp.MustCompile(`(?m)^\s*Resource_List\.walltime = (\S+)`)
	usedTime = regexp.MustCompile(`(?m)^\s*resources_used\.walltime = (\S+)`)
)

// pbsLeft is what is left of a job, from what qstat -f says; 0 where that is not told.
func pbsLeft(details string) time.Duration {
	limit, used := wallTime.FindStringSubmatch(details), usedTime.FindStringSubmatch(details)
	switch {
	case limit == nil:
		return 0
	case used == nil:
		return quantity.ClockTime(limit[1])
	}
	return max(quantity.ClockTime(limit[1])-quantity.ClockTime(used[1]), time.Second)
}

func (a *Allocation) add(name string, cpus int64) {
	for i := range a.Nodes {
		if a.Nodes[i].Name == name {
			a.Nodes[i].CPUs += cpus
			return
		}
	}
	a.Nodes = append(a.Nodes, Node{name, cpus})
}

func eachLine(file string, do func(fields []string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan(); n++ {
		if n > maxNodes {
			return fmt.Errorf("%s has more than %d lines", file, maxNodes)
		}
		if fields := strings.Fields(lines.Text()); len(fields) > 0 {
			if err := do(fields); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// CPUs are the processors of the largest node. On those of PBS pilots cannot tell what they
// have, and take as many as the smallest node has.
func (a *Allocation) CPUs() int64 {
	cpus := a.Nodes[0].CPUs
	for _, node := range a.Nodes {
		if a.Kind == PBS {
			cpus = min(cpus, node.CPUs)
		} else {
			cpus = max(cpus, node.CPUs)
		}
	}
	return cpus
}

// Left is what is left of the time of the allocation, and false where it has no end that
// is known.
func (a *Allocation) Left() (time.Duration, bool) {
	return max(time.Until(a.end), 0), !a.end.IsZero()
}
