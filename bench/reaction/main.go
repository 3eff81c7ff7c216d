// Command reaction measures how soon a program answers a message while it
// computes, the experiment of Table 1 of Bougé, Danjean, Namyst (2002): an echo
// server with n computing tasks, asked by a client in another process at random
// moments. Each run is a fresh server process; this process is the client. Runs
// of all rows alternate, so that what changes on the machine meanwhile meets
// all of them.
//
//	go run ./bench/reaction -json
//
// The rows gosched, netconn and locked-thread are how a Go program does it
// without package sched; sched-poll, sched-eager, sched-block and sched-adaptive let
// package sched detect the message by polling every millisecond, by polling without a
// pause while a slot is idle and every millisecond otherwise, by blocking, and as it
// chooses. Without computing tasks the machine is idle. Rows with +foreign run beside other programs that keep every
// processor busy. work_ratio is the computing done per second against that of
// as many plain goroutines with nothing to answer (null without computing).
package main

import (
	"flag"
	"time"

	"fairway/bench/measure"
)

func main() {
	var pick selection
	flag.Func("n", "measure only with these `numbers` of computing tasks, separated by commas", pick.tasks)
	var srv serverConfig
	flag.StringVar(&srv.mode, "serve", "", "internal: run as the echo server of a row")
	flag.IntVar(&srv.computing, "computing", 0, "internal: computing tasks")
	flag.BoolVar(&srv.checkpoints, "checkpoints", false, "internal: tasks checkpoint")
	flag.IntVar(&srv.priorities, "priorities", 0, "sched.Priorities of the sched rows: 0 auto, 1 slices, 2 nice, 3 none")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		if srv.mode != "" {
			return nil, serve(srv)
		}
		p := full
		if run.Quick {
			p = short
		}
		p.alone.rounds = run.Rounds(p.alone.rounds, p.alone.rounds)
		p.beside.rounds = run.Rounds(p.beside.rounds, p.beside.rounds)
		pick.wants = run.Wants
		rows, err := measureAll(p, pick, srv.priorities)
		return measure.Rows(heading, rows, row.String), err
	})
}

// plan says how long to measure.
type plan struct {
	pause time.Duration // mean of the exponential pauses between messages
	alone schedule
	// Beside foreign processes the kernel decides anew with each run which
	// threads share a processor, so that many short runs tell more than few long.
	beside schedule
}

type schedule struct {
	rounds int
	each   time.Duration // of one run
	tasks  []int
}

var (
	full = plan{
		pause:  5 * time.Millisecond,
		alone:  schedule{3, 2300 * time.Millisecond, []int{0, 1, 2, 5, 10, 40}},
		beside: schedule{6, 1200 * time.Millisecond, []int{2, 10, 40}},
	}
	short = plan{
		pause:  5 * time.Millisecond,
		alone:  schedule{1, 1500 * time.Millisecond, []int{0, 10, 40}},
		beside: schedule{2, 1200 * time.Millisecond, []int{10}},
	}
)
