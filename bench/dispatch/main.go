// Command dispatch measures the time per job through the whole TaskQueue
// core: submit, match, report, commit, with the records that a store would
// make durable. It keeps a queue at 1,000, 100,000 and 1,000,000 jobs; each
// reads 3 of 100,000 files and writes one; 1,000 pilots hold 10 files each.
//
// The rows: spread is as said; in popular all jobs read one file that all
// pilots hold; in unfit no queued job fits any pilot, and for each measured
// job (which fits) a pilot has asked in vain before; in lookup nothing moves, and the
// time is that of finding a queued job by its name with its files: their versions, where
// they are stored, and how many pilots hold them.
//
// The three lengths are in memory together and are measured in turns.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"

	"fairway/bench/measure"
)

type row struct {
	Name        string  `json:"name"`
	Queued      int     `json:"queued"`
	Microsecs   float64 `json:"us_per_job"`
	BytesPerJob float64 `json:"bytes_per_job"`
}

func line(r row) string {
	return fmt.Sprintf("%-8s %8d queued  %6.2f us/job  %5.0f bytes/job", r.Name, r.Queued, r.Microsecs, r.BytesPerJob)
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	sizes := flag.String("queued", "1000,100000,1000000", "lengths of the queue")
	names := flag.String("rows", "spread,popular,unfit,lookup", "rows to measure")
	jobs := flag.Int("jobs", 5_000, "jobs in each round")
	rounds := flag.Int("rounds", 31, "rounds of each row, of which the median counts")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	lengths, err := parseLengths(*sizes)
	if err != nil {
		exit(2, fmt.Errorf("-queued: %w", err))
	}
	if *profile != "" {
		if err := startProfile(*profile); err != nil {
			exit(2, fmt.Errorf("-cpuprofile: %w", err))
		}
		defer pprof.StopCPUProfile()
	}
	var rows []row
	for _, name := range strings.Split(*names, ",") {
		list, err := measureRows(name, lengths, *jobs, *rounds)
		if err != nil {
			exit(1, err)
		}
		rows = append(rows, list...)
	}
	if err := measure.Print(rows, *asJSON, line); err != nil {
		exit(1, err)
	}
}

func exit(code int, err error) {
	fmt.Fprintln(os.Stderr, "dispatch:", err)
	os.Exit(code)
}

func startProfile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}

func parseLengths(list string) ([]int, error) {
	var lengths []int
	for _, size := range strings.Split(list, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return nil, err
		}
		lengths = append(lengths, n)
	}
	return lengths, nil
}
