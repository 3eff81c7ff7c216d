// Command lock measures the locks of package orwl, each against its yardstick
// in the same run.
package main

import (
	"fmt"
	"os"

	"fairway/bench/measure"
)

// benchmark makes one row; quick asks for fewer and shorter rounds.
type benchmark struct {
	name string
	run  func(quick bool) (measure.Row, error)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == childFlag {
		measure.ExitOn(serveRows())
		return
	}
	measure.Main(func(run measure.Run) (measure.Result, error) {
		var rows []measure.Row
		for _, b := range benchmarks {
			if !run.Wants(b.name) {
				continue
			}
			r, err := b.run(run.Quick)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		return measure.Rows("", rows, func(r measure.Row) string {
			return fmt.Sprintf("%-12s %14.1f ns %14.1f ns   ratio %.2f  %s", r.Name, r.NS, r.Yardstick, r.Ratio, r.Note)
		}), nil
	})
}
