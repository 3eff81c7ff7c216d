// Command lock measures the locks of package orwl, each against its yardstick
// in the same run.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"fairway/bench/measure"
)

// benchmark makes one row; quick asks for fewer and shorter rounds.
type benchmark struct {
	name string
	run  func(quick bool) (measure.Row, error)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == childFlag {
		exit(serveRows())
	}
	asJSON := flag.Bool("json", false, "print one JSON object")
	quick := flag.Bool("quick", false, "fewer and shorter rounds")
	only := flag.String("only", "", "run only the rows with these names, separated by commas")
	flag.Parse()
	exit(run(*asJSON, *quick, *only))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "lock:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(asJSON, quick bool, only string) error {
	var rows []measure.Row
	for _, b := range benchmarks {
		if only != "" && !strings.Contains(","+only+",", ","+b.name+",") {
			continue
		}
		r, err := b.run(quick)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	return measure.Print(rows, asJSON, func(r measure.Row) string {
		return fmt.Sprintf("%-12s %14.1f ns %14.1f ns   ratio %.2f  %s", r.Name, r.NS, r.Yardstick, r.Ratio, r.Note)
	})
}
