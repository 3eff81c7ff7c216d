// Files measures what jobs cost whose work is to read and write files: beside make, and with
// -peers beside Snakemake.
//
//	go run ./bench/files -json
//	go run ./bench/files -small 20000 -medium 60 -medium-size 50000000 -large-size 1000000000 -peers
//	go run ./bench/files -only merge -merge 20000
//	go run ./bench/files -only merge -merge 100000 -rounds 1
//
// Three workflows are compared with make: many small files and some of medium size, each copied by a job
// (cp), and large ones, each copied by a job whose output another one counts (wc -l). A fourth, merge, is
// one job that reads many files: its first run, one when a file has changed, both over the same
// with --cache none, and how long it goes on after a Ctrl-C while its files are staged in. All run two jobs
// at a time, over the same inputs, in turns, of which each round has another order. Fairway brings
// to disk what it has acknowledged; make and Snakemake do not, so their time includes a sync of the
// file system at the end.
//
// Processor time, and what was read and written, are those of all processes of a run, as the
// kernel counts them for who waits for them (getrusage(2), proc_pid_io(5)), and of the sync. What
// threads of the kernel write to disk by themselves counts for nobody. Read and written are the
// bytes that passed system calls, from memory or disk. To disk is what the block device below the
// folder wrote until all was there, which includes the journal and what others wrote: the machine
// should do nothing else. The disk at most is how much less the file system had free.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"fairway/bench/measure"
	"fairway/internal/cli"
)

// row is what a program needed for a workflow: medians of the rounds.
type row struct {
	Workflow string  `json:"workflow"`
	Program  string  `json:"program"`
	Files    int     `json:"files"`
	Size     int64   `json:"size"` // of each, in bytes
	Seconds  float64 `json:"seconds"`
	Ratio    float64 `json:"ratio"` // of the time, over make in the same round; of a merge over no cache
	CPU      float64 `json:"cpu_seconds"`
	Read     int64   `json:"bytes_read"`
	Written  int64   `json:"bytes_written"`
	ToDisk   int64   `json:"bytes_to_disk"`
	DiskMost int64   `json:"disk_at_most"`
}

// workflow is one of the three.
type workflow struct {
	name    string
	files   int
	size    int64 // of each, in bytes
	counted bool  // the copies are read by another job
}

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main()) // this program is fairway too, and its pilots
	}
	small := workflow{name: "small"}
	medium := workflow{name: "medium"}
	large := workflow{name: "large", counted: true}
	flag.IntVar(&small.files, "small", 1000, "small files")
	flag.Int64Var(&small.size, "small-size", 4096, "bytes of each of them")
	flag.IntVar(&medium.files, "medium", 10, "files of medium size")
	flag.Int64Var(&medium.size, "medium-size", 20e6, "bytes of each of them")
	flag.IntVar(&large.files, "large", 4, "large files")
	flag.Int64Var(&large.size, "large-size", 100e6, "bytes of each of them")
	merge := workflow{name: "merge"}
	flag.IntVar(&merge.files, "merge", 2000, "small files that one job merges")
	flag.Int64Var(&merge.size, "merge-size", 1000, "bytes of each of them")
	peers := flag.Bool("peers", false, "also with Snakemake (pip install snakemake; FAIRWAY_PEERS_SNAKEMAKE names it)")
	folder := flag.String("folder", "", "make folders here (default: where the system keeps temporary files)")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		ctx, rounds := context.Background(), run.Rounds(3, 1)
		if run.Quick {
			small.files, medium.files, large.files, merge.files = 5, 0, 0, 10
		}
		programs := []program{fairway{}, gnuMake{}}
		if *peers {
			programs = append(programs, snakemake{})
		}
		var rows []row
		for _, w := range []workflow{small, medium, large, merge} {
			if !run.Wants(w.name) || w.files == 0 {
				continue
			}
			measured := func() ([]row, error) { return compare(ctx, *folder, w, programs, rounds) }
			if w.name == merge.name {
				measured = func() ([]row, error) { return mergeRows(ctx, *folder, merge, rounds) }
			}
			found, err := measured()
			if err != nil {
				return nil, err
			}
			rows = append(rows, found...)
		}
		return measure.Rows("", rows, line), nil
	})
}

func line(r row) string {
	const mega = 1e6
	return fmt.Sprintf("%-11s %6d x %10d B  %-9s %8.2f s  %5.2f  %7.2f s of processors  read %7.0f MB"+
		"  written %7.0f MB  to disk %7.0f MB  disk at most %7.0f MB", r.Workflow, r.Files, r.Size, r.Program, r.Seconds,
		r.Ratio, r.CPU, float64(r.Read)/mega, float64(r.Written)/mega, float64(r.ToDisk)/mega, float64(r.DiskMost)/mega)
}
