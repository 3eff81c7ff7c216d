// Command llk23 sweeps Livermore kernel 23 over a matrix, in blocks ordered by
// package orwl, and compares the bits with the sequential sweep.
//
//	go run ./examples/llk23 -n 1000 -rows 4 -columns 4 -iterations 100
//
// Several processes share the work, on one host or on many: each is started
// with the same flags but its own number.
//
//	go run ./examples/llk23 -addresses 127.0.0.1:7001,127.0.0.1:7002 -process 0 &
//	go run ./examples/llk23 -addresses 127.0.0.1:7001,127.0.0.1:7002 -process 1
//
// As a gang of jobs it needs no addresses, and saves what it has every few seconds: workflow.yaml.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
)

func main() {
	n := flag.Int("n", 600, "rows and columns of the matrix")
	rows := flag.Int("rows", 4, "rows of blocks")
	columns := flag.Int("columns", 4, "columns of blocks")
	iterations := flag.Int("iterations", 100, "sweeps over the matrix")
	trace := flag.String("trace", "", "write who waited for whom to this file (open it in Perfetto)")
	var o part
	o.flags()
	var g gang
	g.flags()
	flag.Parse()
	p := &sweep.Program{Cut: sweep.NewCut(*n, *rows, *columns, sweep.DefaultSweeps), Last: *rows, Iterations: *iterations}
	if *trace != "" {
		p.Trace = new(orwl.Trace)
	}
	if err := errors.Join(run(&o, &g, p), write(p.Trace, *trace)); err != nil {
		fmt.Fprintln(os.Stderr, "llk23:", err)
		os.Exit(1)
	}
}

func run(o *part, g *gang, p *sweep.Program) error {
	switch {
	case o.addresses != "":
		return runPart(o, p)
	case g.every > 0:
		return runTask(g, p)
	}
	ctx := context.Background()
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
	return report(ctx, p, time.Since(start))
}

func write(trace *orwl.Trace, file string) error {
	if trace == nil {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = trace.WriteTo(f)
	return errors.Join(err, f.Close())
}
