// Command gpu sweeps Livermore kernel 23 over a matrix on a device of OpenCL that holds only a few
// blocks of it, and compares the bits with the sequential sweep. Ordered locks alone say which block
// is loaded, computed or stored next; requests that were posted ahead have transfers and kernels
// overlap. It prints how much, for 1, 2, 3 and more buffers.
//
//	go run ./examples/gpu -n 1026 -rows 8 -columns 8
//
// Debian's pocl-opencl-icd computes on processors. -device names another device by a part of its name;
// go computes without OpenCL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"fairway/examples/llk23/sweep"
)

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.n, "n", 1026, "rows and columns of the matrix")
	flag.IntVar(&o.rows, "rows", 8, "rows of blocks")
	flag.IntVar(&o.columns, "columns", 8, "columns of blocks")
	flag.IntVar(&o.iterations, "iterations", 20, "sweeps over the matrix")
	flag.StringVar(&o.device, "device", "", "a part of the name of a device of OpenCL, or go: none (default: the first)")
	buffers := flag.String("buffers", "1,2,3,4", "how many blocks the device holds, a run for each")
	flag.Parse()
	for text := range strings.SplitSeq(*buffers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "gpu: -buffers: %q is no number of buffers\n", text)
			os.Exit(2)
		}
		o.buffers = append(o.buffers, n)
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

type options struct {
	n, rows, columns, iterations int
	buffers                      []int
	device                       string
	out                          io.Writer
}

// run prints a table with a row for each number of buffers.
func run(ctx context.Context, o options) error {
	want := sweep.Sequential(o.n, o.iterations)
	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "buffers\tall\tloading\tcomputing\tstoring\thidden transfers\t")
	for i, buffers := range o.buffers {
		s, err := newStream(o.n, o.rows, o.columns, o.iterations, buffers)
		if err != nil {
			return err
		}
		if err := s.open(o.device); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(o.out, "%d x %d elements in %d x %d blocks, %d sweeps on %s\n",
				o.n, o.n, o.rows, o.columns, o.iterations, s.device.Name())
		}
		took, err := s.run(ctx)
		s.device.Close()
		if err != nil {
			return err
		}
		got, err := s.result(ctx)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return errors.New("the bits differ from those of the sequential sweep")
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.0f %%\t\n", buffers, short(took), short(s.spent[load]),
			short(s.spent[compute]), short(s.spent[store]), 100*s.hidden(took))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.out, "the same bits as the sequential sweep")
	return nil
}

func (s *stream) open(named string) (err error) {
	if named == "go" {
		s.device = newEmulated(len(s.buffers), len(s.blocks), s.size())
		return nil
	}
	s.device, err = openCard(named, len(s.buffers), len(s.blocks), s.size())
	return err
}

// hidden is which part of the time of transfers cost nothing, since something was computed or the other
// way was used meanwhile.
func (s *stream) hidden(took time.Duration) float64 {
	transfers := s.spent[load] + s.spent[store]
	return min(1, max(0, 1-float64(took-s.spent[compute])/float64(transfers)))
}

func short(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
