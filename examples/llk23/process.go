package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
)

// part says which of several processes this is, and how they reach each other.
type part struct {
	addresses     string
	cert, key, ca string
	group         orwl.Group
}

func (o *part) flags() {
	flag.StringVar(&o.addresses, "addresses", "", "where the processes listen, separated by commas: host:port, or a "+
		"path for shared memory on one host")
	flag.IntVar(&o.group.Process, "process", 0, "which of them this is, from 0")
	flag.StringVar(&o.cert, "cert", "", "certificate of this process (PEM), needed between hosts")
	flag.StringVar(&o.key, "key", "", "its key")
	flag.StringVar(&o.ca, "ca", "", "certificates that the others' are signed with")
	flag.DurationVar(&o.group.Patience, "patience", 30*time.Second, "how long to wait for the other processes to start")
}

// complete completes the group: this process needs those with the rows above and below.
func (o *part) complete() (err error) {
	g := &o.group
	g.Addresses = strings.Split(o.addresses, ",")
	g.Neighbours = []int{}
	for _, k := range []int{g.Process - 1, g.Process + 1} {
		if k >= 0 && k < len(g.Addresses) {
			g.Neighbours = append(g.Neighbours, k)
		}
	}
	if o.cert != "" {
		g.TLS, err = orwl.LoadTLS(o.cert, o.key, o.ca)
	}
	return err
}

// runPart computes the rows of blocks of one process.
func runPart(o *part, p *sweep.Program) error {
	ctx := context.Background()
	if err := o.complete(); err != nil {
		return err
	}
	process, count := o.group.Process, len(o.group.Addresses)
	p.First, p.Last = process*p.Rows/count, (process+1)*p.Rows/count
	if process < 0 || process >= count || p.First == p.Last {
		return fmt.Errorf("process %d of %d has none of %d rows of blocks", process, count, p.Rows)
	}
	var options []orwl.Option
	if orwl.Network(o.group.Addresses[process]) == "unix" {
		options = append(options, orwl.Shared())
	}
	if err := p.Build(options...); err != nil {
		return err
	}
	m, err := o.group.Join(ctx, p.Frontiers()...)
	if err != nil {
		return err
	}
	defer m.Close()
	p.Others = m
	start := time.Now()
	if err := errors.Join(p.Insert(ctx), p.Run(ctx)); err != nil {
		return err
	}
	took := time.Since(start)
	if err := m.Finish(ctx); err != nil { // now the others have read what they need
		return err
	}
	return report(ctx, p, took)
}

// report compares what this process computed with the sequential sweep.
func report(ctx context.Context, p *sweep.Program, took time.Duration) error {
	start := time.Now()
	want := sweep.Sequential(p.N, p.Iterations)
	sequential := time.Since(start)
	got := append([]float64(nil), want...)
	if err := p.Result(ctx, got); err != nil {
		return err
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("element %d,%d is not that of the sequential sweep", i/p.N, i%p.N)
		}
	}
	fmt.Printf("rows %d to %d of %d, each of %d blocks: %v; all of it one after the other: %v; the same bits\n",
		p.First, p.Last-1, p.Rows, p.Columns, took.Round(time.Microsecond), sequential.Round(time.Microsecond))
	return nil
}
