// Command llk23 sweeps Livermore kernel 23 over a matrix, in blocks ordered by
// package orwl, and compares the bits with the sequential sweep.
//
//	go run ./examples/llk23 -n 1000 -rows 4 -columns 4 -iterations 100
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/orwl"
)

func main() {
	n := flag.Int("n", 600, "rows and columns of the matrix")
	rows := flag.Int("rows", 4, "rows of blocks")
	columns := flag.Int("columns", 4, "columns of blocks")
	iterations := flag.Int("iterations", 100, "sweeps over the matrix")
	trace := flag.String("trace", "", "write who waited for whom to this file (open it in Perfetto)")
	flag.Parse()
	if err := run(*n, *rows, *columns, *iterations, *trace); err != nil {
		fmt.Fprintln(os.Stderr, "llk23:", err)
		os.Exit(1)
	}
}

func run(n, rows, columns, iterations int, traceFile string) error {
	ctx := context.Background()
	p := sweep.Program{Cut: sweep.NewCut(n, rows, columns, sweep.DefaultSweeps), Last: rows, Iterations: iterations}
	if traceFile != "" {
		p.Trace = new(orwl.Trace)
	}
	if err := p.Build(); err != nil {
		return err
	}
	if err := p.Insert(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := p.Run(ctx); err != nil {
		return err
	}
	parallel := time.Since(start)
	got := make([]float64, n*n)
	sweep.Boundary(n, got)
	if err := p.Result(ctx, got); err != nil {
		return err
	}
	start = time.Now()
	want := sweep.Sequential(n, iterations)
	fmt.Printf("%d blocks: %v, one after the other: %v, same bits: %v\n",
		rows*columns, parallel.Round(time.Microsecond), time.Since(start).Round(time.Microsecond), slices.Equal(got, want))
	if p.Trace == nil {
		return nil
	}
	f, err := os.Create(traceFile)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = p.Trace.WriteTo(f)
	return err
}
