// Command snakemake measures what many short jobs of Snakemake cost on a cluster: jobs of a second,
// with the plugin for Fairway, whose pilots have the slots; and with the plugin for Slurm, which
// submits each job, or arrays of them, or groups.
//
//	go run ./bench/snakemake -json
//	go run ./bench/snakemake -jobs 200 -only fairway,slurm
//
// It starts a real Slurm on this machine in a folder of its own, with eight slots on four nodes, and
// installs Snakemake and its plugins from PyPI into bin/snakemake-slurm. The turnaround is that of
// `snakemake`, with all that comes before and after the jobs. sdiag tells how many jobs were submitted
// and how often slurmctld was called, by nodes too. Core-hours are those of Slurm's record of the
// jobs: the processors of each, times how long it had them.
//
// Each row is said on standard error as soon as it is measured. One that does not end within -limit
// says so. Needs root, Slurm, Python 3.11, and a machine without a Slurm of its own: meanwhile
// /etc/slurm/slurm.conf leads to the settings of this one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"fairway/bench/measure"
)

// row is what one way has taken.
type row struct {
	Name       string  `json:"name"`
	Jobs       int     `json:"jobs"` // of Snakemake, that were done
	Turnaround float64 `json:"turnaround_s"`
	BatchJobs  int     `json:"batch_jobs"`        // of Slurm; each task of an array is one
	Submitted  int     `json:"submissions"`       // calls of sbatch
	Calls      int     `json:"slurmctld_calls"`   // of all kinds, by users and nodes
	CoreHours  float64 `json:"core_hours"`        // that Slurm gave
	Slot       float64 `json:"slot_s"`            // of a slot for each job
	Speed      float64 `json:"speed,omitempty"`   // turnaround of slurm over this one
	Batch      float64 `json:"batches,omitempty"` // batch jobs over those of slurm
	Note       string  `json:"note,omitempty"`
}

func (r row) String() string {
	return strings.TrimRight(fmt.Sprintf("%-12s %5d jobs %8.1f s  %5d batch jobs in %d submissions  "+
		"%6d calls of slurmctld  %7.3f core-hours  %5.2f s of a slot for each  %s", r.Name, r.Jobs, r.Turnaround, r.BatchJobs,
		r.Submitted, r.Calls, r.CoreHours, r.Slot, r.Note), " ")
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	jobs := flag.Int("jobs", 2000, "jobs of the Snakefile")
	limit := flag.Duration("limit", time.Hour, "how long a row may take")
	only := flag.String("only", "", "measure only the rows with these `names`, separated by commas")
	flag.Parse()
	host := measure.NewHost("snakemake", "")
	defer host.End()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := openCluster(ctx, host)
	if err != nil {
		host.Fatal(err)
	}
	var rows []row
	for _, w := range ways {
		if ctx.Err() != nil || *only != "" && !slices.Contains(strings.Split(*only, ","), w.name) {
			continue
		}
		r, err := c.measure(ctx, w, *jobs, *limit)
		if err != nil {
			host.Fatal(fmt.Sprintf("%s: %v", w.name, err))
		}
		fmt.Fprintln(os.Stderr, r)
		rows = append(rows, r)
	}
	compare(rows)
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

// compare fills in what is relative to one batch job for each job.
func compare(rows []row) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.Name == "slurm" && r.Note == "" })
	if i < 0 {
		return
	}
	for j := range rows {
		rows[j].Speed = rows[i].Turnaround / rows[j].Turnaround
		rows[j].Batch = float64(rows[j].BatchJobs) / float64(max(1, rows[i].BatchJobs))
	}
}
