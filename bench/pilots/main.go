// Command pilots measures what pilots save on a cluster: how long short jobs take
// as jobs of Slurm, as an array of Slurm, and in pilots that Fairway has Slurm
// start; and how soon a job starts whose predecessor has ended.
//
//	go run ./bench/pilots -json
//
// It starts a real Slurm on this machine in a folder of its own, and ends it by
// process. All three get the same four slots, two on each of two nodes. All jobs
// execute one small static program, which writes down when it began and ended.
// The turnaround counts from before the first command of the submission until the
// last job has ended: so it has the start of `fairway run` in it, and the time that
// its pilots wait in Slurm's queue. With -peers, HyperQueue, Parsl and dask-jobqueue get
// the same slots, as two jobs of Slurm with two processors each. The dependency time is the
// median from the end of a job to the start of the next in a chain. Rounds of all alternate.
// Needs root, Slurm and a C compiler.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"fairway/bench/measure"
)

// plan says how much to measure.
type plan struct {
	rounds, jobs, chain int
	length              time.Duration // of a job
	untuned             bool          // Slurm schedules as it does without SchedulerParameters
	peers               bool          // HyperQueue, Parsl and Dask take part, where they are installed
	ways                string        // names of those to measure, separated by commas; empty: all
}

var (
	full  = plan{rounds: 3, jobs: 400, chain: 20, length: 100 * time.Millisecond}
	short = plan{rounds: 1, jobs: 40, chain: 4, length: 100 * time.Millisecond}
)

// row is one line of the result.
type row struct {
	Name       string  `json:"name"`
	Turnaround float64 `json:"turnaround_s"`
	Dependency float64 `json:"dependency_ms"`
}

// report is what -json prints.
type report struct {
	Rows    []row           `json:"rows"`
	Ratio   float64         `json:"ratio,omitempty"` // turnaround of fairway over that of slurm-array
	Jobs    int             `json:"jobs"`
	Rounds  int             `json:"rounds"`
	Slots   int             `json:"slots"`
	Floor   float64         `json:"floor_s"` // what the jobs take on the slots at least, without any overhead
	Untuned bool            `json:"untuned,omitempty"`
	Slurm   string          `json:"slurm"`
	Machine measure.Machine `json:"machine"`
}

func main() {
	untuned := flag.Bool("untuned", false, "let Slurm schedule as it does by default, and not as fast as it can")
	peers := flag.Bool("peers", false, "measure HyperQueue ("+hqVariable+"), Parsl and Dask too, of the Python that "+
		pythonVariable+" names")
	submission := flag.Bool("submission", false, "measure the submissions of paper 3, figures 6 and 7, instead")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		p := full
		if run.Quick {
			p = short
		}
		p.rounds, p.untuned, p.ways, p.peers = run.Rounds(p.rounds, p.rounds), *untuned, run.Only, *peers
		host := measure.NewHost("pilots", "")
		defer host.End()
		if *submission {
			rows, err := measureSubmissions(context.Background(), host, p)
			return measure.Rows("", rows, func(r submissionRow) string {
				return fmt.Sprintf("%-8s first start %6.2f s, nothing runs for %6.2f s, turnaround %6.2f s", r.Name, r.FirstStart,
					r.Gap, r.Turnaround)
			}), err
		}
		r, err := measureAll(context.Background(), host, p)
		return measure.Object(r), err
	})
}

// String is the report for a person.
func (r *report) String() string {
	var text strings.Builder
	for _, w := range r.Rows {
		fmt.Fprintf(&text, "%-12s %8.2f s for %d jobs, %8.1f ms from a job to the next\n", w.Name, w.Turnaround, r.Jobs,
			w.Dependency)
	}
	fmt.Fprintf(&text, "turnaround, fairway over slurm-array: %.3f; all jobs on all slots take %.1f s at least\n",
		r.Ratio, r.Floor)
	return text.String()
}
