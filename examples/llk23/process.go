package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/orwl"
)

// part says which of several processes this is, and how they reach each other.
type part struct {
	process       int
	addresses     string
	cert, key, ca string
	patience      time.Duration
}

func (o *part) flags() {
	flag.StringVar(&o.addresses, "addresses", "", "where the processes listen, separated by commas: host:port, or a path for shared memory on one host")
	flag.IntVar(&o.process, "process", 0, "which of them this is, from 0")
	flag.StringVar(&o.cert, "cert", "", "certificate of this process (PEM), needed between hosts")
	flag.StringVar(&o.key, "key", "", "its key")
	flag.StringVar(&o.ca, "ca", "", "certificates that the others' are signed with")
	flag.DurationVar(&o.patience, "patience", 30*time.Second, "how long to wait for the other processes to start")
}

func (o *part) list() []string { return strings.Split(o.addresses, ",") }

// network tells paths from addresses.
func network(address string) string {
	if strings.Contains(address, "/") {
		return "unix"
	}
	return "tcp"
}

func (o *part) tls() (*tls.Config, error) {
	if o.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", o.ca)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

// serve lets the others read the frontiers.
func (o *part) serve(s *orwl.Server, c *tls.Config) error {
	own := o.list()[o.process]
	l, err := net.Listen(network(own), own)
	if err != nil {
		return err
	}
	go func() {
		if c != nil {
			err = s.ServeTLS(l, c)
		} else {
			err = s.Serve(l)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "llk23:", err)
		}
	}()
	return nil
}

// neighbours dials the processes with the rows above and below, which may have yet to start.
func (o *part) neighbours(ctx context.Context, c *tls.Config) (sweep.Peers, error) {
	d := orwl.Dialer{TLS: c, Patience: o.patience}
	var peers sweep.Peers
	for k, address := range o.list() {
		if k != o.process-1 && k != o.process+1 {
			continue
		}
		p, err := d.Dial(ctx, network(address), address)
		if err != nil {
			return peers, fmt.Errorf("process %d: %w", k, err)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// runPart computes the rows of blocks of one process.
func runPart(o *part, p *sweep.Program) error {
	ctx := context.Background()
	count := len(o.list())
	p.First, p.Last = o.process*p.Rows/count, (o.process+1)*p.Rows/count
	if o.process < 0 || o.process >= count || p.First == p.Last {
		return fmt.Errorf("process %d of %d has none of %d rows of blocks", o.process, count, p.Rows)
	}
	c, err := o.tls()
	if err != nil {
		return err
	}
	var options []orwl.Option
	if network(o.list()[o.process]) == "unix" {
		options = []orwl.Option{orwl.Shared()}
	}
	if err := p.Build(options...); err != nil {
		return err
	}
	var s orwl.Server
	s.Add(p.Frontiers()...)
	defer s.Close()
	if err := o.serve(&s, c); err != nil {
		return err
	}
	peers, err := o.neighbours(ctx, c)
	defer func() { peers.Close() }()
	if err != nil {
		return err
	}
	p.Others = peers
	start := time.Now()
	if err := errors.Join(p.Insert(ctx), p.Run(ctx)); err != nil {
		return err
	}
	took := time.Since(start)
	// The others have read what they need when they have closed their connections too.
	if err := errors.Join(peers.Close(), s.Shutdown(ctx)); err != nil {
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
