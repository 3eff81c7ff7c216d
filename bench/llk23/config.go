package main

import (
	"fmt"
	"strings"
	"time"

	"fairway/examples/llk23/sweep"
)

// config is one measurement.
type config struct {
	N            int    `json:"n"`
	Cores        int    `json:"cores"`
	TasksPerCore int    `json:"tasks_per_core"`
	Processes    int    `json:"processes"`
	Transport    string `json:"transport"` // memory, shared or tcp, or one of the others below
	Rows         int    `json:"rows"`
	Columns      int    `json:"columns"`
	Iterations   int    `json:"iterations"`
	// Process is which of the processes this is, from 0.
	Process int `json:"process"`
	// Scheme is that of the tasks, if not the usual one.
	Scheme string `json:"scheme,omitempty"`

	// Where each process is on a host of its own: the namespaces of their networks and their
	// addresses, separated by commas, the folder of their keys, and the delay of their lines.
	Namespaces string        `json:"namespaces,omitempty"`
	Addresses  string        `json:"addresses,omitempty"`
	Keys       string        `json:"keys,omitempty"`
	Delay      time.Duration `json:"delay,omitempty"`
}

func (c config) onHosts() bool { return c.Namespaces != "" }

// host returns one of the words of a list, that of the process.
func (c config) host(list string) string { return strings.Split(list, ",")[c.Process] }

func (c config) cut() sweep.Cut {
	if c.Scheme == schemePaper {
		return sweep.PaperCut(c.N, c.Rows, c.Columns)
	}
	return sweep.NewCut(c.N, c.Rows, c.Columns, sweep.DefaultSweeps)
}

// What stands in the place of a transport where package orwl does not run.
const (
	listing8     = "listing8"
	withoutLocks = "without locks"
	openMP       = "openmp"
	mpi          = "mpi"
)

func newConfig(n, cores, perCore, processes int, transport string) config {
	c := config{N: n, Cores: cores, TasksPerCore: perCore, Processes: processes, Transport: transport}
	c.Rows, c.Columns = blocks(max(cores*perCore, processes), processes)
	c.Iterations = iterations(n, elements)
	return c
}

// elements is how many updates a run does: enough for a tenth of a second and more, so
// that the start and the end, when blocks wait for the first or for no others, count little.
const elements = 80_000_000

// iterations is the number of sweeps over an n x n matrix for a number of updates, in
// full rounds of several sweeps at once, at least two.
func iterations(n, updates int) int {
	return max(2, updates/(n*n)/sweep.DefaultSweeps) * sweep.DefaultSweeps
}

// onOneCore is the same with the tasks of one core.
func (c config) onOneCore() config {
	return newConfig(c.N, 1, c.TasksPerCore, c.Processes, c.Transport)
}

// withOneTask is the same with one task per core.
func (c config) withOneTask() config {
	return newConfig(c.N, c.Cores, 1, c.Processes, c.Transport)
}

// sequential is a program for one core without tasks.
func sequential(n int, program string) config { return newConfig(n, 1, 1, 1, program) }

func (c config) ordered() bool {
	return c.Transport == "memory" || c.Transport == "shared" || c.Transport == "tcp"
}

// widest is how many times as wide as high a block may be.
const widest = 4

// blocks cuts into blocks with as many rows as processes at least. The kernel is the
// faster the longer its rows are; frontiers are shortest around squares.
func blocks(count, processes int) (rows, columns int) {
	rows, columns = count, 1
	for c := 2; rows > widest*columns && count/c >= processes; c++ {
		if count%c == 0 {
			rows, columns = count/c, c
		}
	}
	return rows, columns
}

func (c config) String() string {
	return fmt.Sprintf("%d² on %d cores, %d tasks per core, %d processes, %s", c.N, c.Cores, c.TasksPerCore,
		c.Processes, c.Transport)
}

// round returns what runs in one round for a size: what is compared stands
// close together.
func round(n int) []config {
	atOnce := sequential(n, withoutLocks)
	atOnce.Cores = 2
	configs := []config{sequential(n, listing8), sequential(n, withoutLocks), atOnce}
	for _, transport := range []string{"memory", "shared", "tcp", openMP, mpi} {
		for _, perCore := range []int{1, 4, 16} {
			for _, cores := range []int{1, 2} {
				c := newConfig(n, cores, perCore, 1, transport)
				switch {
				case transport == "shared" || transport == "tcp":
					c = newConfig(n, cores, perCore, 2, transport)
				case !c.ordered() && c.Rows*c.Columns == 1:
					continue // Listing 8 itself
				}
				configs = append(configs, c)
			}
		}
	}
	return configs
}
