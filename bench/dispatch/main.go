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
	"cmp"
	"flag"
	"fmt"
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
	sizes := flag.String("queued", "1000,100000,1000000", "lengths of the queue")
	jobs := flag.Int("jobs", 5_000, "jobs in each round")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if run.Quick {
			*sizes, *jobs = "1000", 100
		}
		lengths, err := parseLengths(*sizes)
		if err != nil {
			return nil, fmt.Errorf("-queued: %w", err)
		}
		end, err := measure.StartProfile(run.Profile)
		if err != nil {
			return nil, err
		}
		defer end()
		var rows []row
		for _, name := range strings.Split(cmp.Or(run.Only, "spread,popular,unfit,lookup"), ",") {
			list, err := measureRows(name, lengths, *jobs, run.Rounds(31, 1))
			if err != nil {
				return nil, err
			}
			rows = append(rows, list...)
		}
		return measure.Rows("", rows, line), nil
	})
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
