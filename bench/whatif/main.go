// Command whatif measures how well Fairway foretells. It records runs of several kinds, asks
// `fairway what-if` how long each would take with half and twice the slots, and runs each for real
// with these. Jobs mostly wait, so that other work on the machine disturbs little.
//
//	go run ./bench/whatif -json
//	go run ./bench/whatif -runs 5 -keep /tmp/whatif
//
// A row is one of these runs: recorded_s is how long the recorded one took, foretold_s what was
// foretold from that alone, real_s what it took, and error is foretold over real, less 1. All
// times go from the submission of the first job to the end of the last attempt.
//
// Jobs that compute have their time from the processors that other jobs and other programs leave,
// which a record tells in part only: -computing has runs of them instead.
//
// With -defaults the runs are those of this machine with the default flags, as a person has them;
// -most is the largest error with which the command succeeds; what is off by more is recorded and run
// once more, since other work of the machine may have disturbed it.
//
// With -keep the runs stay in a folder, and those that are there are not run again.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"

	"fairway/bench/measure"
	testprogram "fairway/test/program"
)

func main() {
	runs := flag.Int("runs", 20, "recorded runs, of the kinds in turn")
	keep := flag.String("keep", "", "folder in which the runs stay")
	compute := flag.Bool("computing", false, "runs whose jobs compute, and disturb each other, instead")
	defaults := flag.Bool("defaults", false, "runs of this machine, with the default flags but for their pilots")
	most := flag.Float64("most", 0, "fail where an error is larger, such as 0.15 (0: never)")
	program := flag.String("fairway", "", "the program; default: it is built")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if run.Quick {
			*runs = 1
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		h := measure.NewHost("whatif", "")
		defer h.End()
		rows, err := measureAll(ctx, h, *keep, *program, plans(*compute, *defaults), *runs, *most)
		if err != nil {
			return nil, err
		}
		if err := measure.Rows(heading, rows, row.String)(run.JSON); err != nil {
			return nil, err
		}
		return nil, within(rows, *most)
	})
}

func measureAll(ctx context.Context, h *measure.Host, keep, program string, all []plan, runs int,
	most float64,
) ([]row, error) {
	if keep == "" {
		keep = h.TempDir()
	}
	keep, err := filepath.Abs(keep)
	if err != nil {
		return nil, err
	}
	if program == "" {
		if program, err = testprogram.Build(h.TempDir()); err != nil {
			return nil, err
		}
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	b := bench{folder: keep, program: program, plans: all[:min(max(runs, 1), len(all))]}
	if err := b.runAll(ctx, h); err != nil {
		return nil, err
	}
	rows, err := b.rows(ctx)
	if err != nil {
		return nil, err
	}
	return b.again(ctx, h, rows, most)
}
