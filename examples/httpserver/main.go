// Command httpserver is an HTTP server that also computes, plain and with package
// sched. It answers /hello at once and draws a picture for /mandelbrot.
//
//	go run ./examples/httpserver -serve plain   # or sched
//	go run ./examples/httpserver                # compares both
//
// The comparison keeps each server busy with pictures from eight clients, asks
// for /hello at random moments, prints how long that took, and draws it
// (docs/sched-http.svg). All that the server with sched does otherwise is to run
// the computing as a task, with a checkpoint after each line of the picture: see
// drawing in server.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	serveWith := flag.String("serve", "", "only serve: plain or sched")
	addr := flag.String("addr", "127.0.0.1:0", "address to serve at")
	clients := flag.Int("clients", 8, "clients that ask for pictures")
	lasts := flag.Duration("for", 10*time.Second, "time of each measurement")
	plotFile := flag.String("plot", "docs/sched-http.svg", "file for the plot, empty for none")
	flag.Parse()
	if err := run(*serveWith, *addr, *plotFile, load{*clients, *lasts}); err != nil {
		fmt.Fprintln(os.Stderr, "httpserver:", err)
		os.Exit(1)
	}
}

func run(serveWith, addr, plotFile string, l load) error {
	if serveWith != "" {
		return serve(serveWith, addr)
	}
	var results []measurement
	for _, with := range []string{"plain", "sched"} {
		m, err := measure(with, l)
		if err != nil {
			return fmt.Errorf("server %s: %w", with, err)
		}
		fmt.Println(m)
		results = append(results, m)
	}
	if plotFile == "" {
		return nil
	}
	return draw(plotFile, results)
}
