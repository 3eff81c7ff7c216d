// Long measures whether a long workflow costs as much per job as a short one:
// many files, each of which is read by one job that writes another, and a chain
// of many steps. It runs the whole program as a person does, with pilots,
// caches and published results.
//
//	go run ./bench/long -json
//
// Each kind runs with 1 job, with few, and with many. The time of the first is
// what any run costs, and is taken off the others before they are divided by
// their jobs. While many files are worked on, `fairway jobs`, `fairway explain` and
// `fairway files` are called again and again; afterwards once more, when no server runs
// that could answer.
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

// row is one line of the result.
type row struct {
	Name     string  `json:"name"`
	Jobs     int     `json:"jobs"`
	USPerJob float64 `json:"us_per_job"`
	// Ratio is over the row of the same name with few jobs.
	Ratio float64 `json:"ratio"`
	// Asked is how long `fairway jobs` took while that ran: the median, and the
	// longest, in milliseconds. Afterwards: when nothing ran any more.
	Asked      float64 `json:"jobs_command_ms,omitempty"`
	AskedMost  float64 `json:"jobs_command_most_ms,omitempty"`
	Afterwards float64 `json:"jobs_command_afterwards_ms,omitempty"`
	// Explained is how long `fairway explain` of one job took, likewise.
	Explained      float64 `json:"explain_command_ms,omitempty"`
	ExplainedAfter float64 `json:"explain_command_afterwards_ms,omitempty"`
	// Files is how long `fairway files` took, likewise, and File that for one file.
	Files      float64 `json:"files_command_ms,omitempty"`
	FilesAfter float64 `json:"files_command_afterwards_ms,omitempty"`
	File       float64 `json:"files_command_of_one_ms,omitempty"`
	FileAfter  float64 `json:"files_command_of_one_afterwards_ms,omitempty"`
}

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main()) // this program is fairway too, and its pilots
	}
	asJSON := flag.Bool("json", false, "print one JSON object")
	rounds := flag.Int("rounds", 3, "rounds of which the median counts")
	files := flag.Int("files", 20000, "files of the long workflow, one job each")
	steps := flag.Int("steps", 1000, "steps of the long chain")
	only := flag.String("only", "", "measure only this kind: files, chain")
	flag.Parse()
	rows, err := measureAll(context.Background(), *rounds, *files, *steps, *only)
	if err == nil {
		err = measure.Print(rows, *asJSON, line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
}

func line(r row) string {
	text := fmt.Sprintf("%-6s %6d jobs %8.0f us per job, %.2f times that of few", r.Name, r.Jobs, r.USPerJob, r.Ratio)
	if r.Asked > 0 {
		text += fmt.Sprintf("; fairway jobs took %.0f ms, at most %.0f, afterwards %.0f; fairway explain %.0f, afterwards "+
			"%.0f; fairway files %.0f, afterwards %.0f, of one %.0f, afterwards %.0f",
			r.Asked, r.AskedMost, r.Afterwards, r.Explained, r.ExplainedAfter, r.Files, r.FilesAfter, r.File, r.FileAfter)
	}
	return text
}

func measureAll(ctx context.Context, rounds, files, steps int, only string) ([]row, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, k := range []kind{
		{"files", manyFiles, max(2, files/100), "copy/0", "out/0.txt"}, {"chain", chain, max(2, steps/10), "s1", "1.txt"},
	} {
		if only != "" && only != k.name {
			continue
		}
		s := &series{program: program, kind: k}
		many := files
		if k.name == "chain" {
			many = steps
		}
		few, long, err := s.compare(ctx, rounds, many)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		rows = append(rows, few, long)
	}
	return rows, nil
}
