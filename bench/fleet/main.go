// Command fleet measures what many pilots cost one server: memory and processor
// time while they are idle, the jobs per second that a hundred of them get done,
// and how soon all are served again after the server was killed.
//
//	go run ./bench/fleet -json
//
// The server is a real one in a process of its own, with its store on disk. The
// pilots are light: they speak the real protocol over TLS on loopback, each over a
// connection and with a token of its own, but they live together in few processes,
// and their jobs end when they begin. They are on the same machine, so they take
// most of the processors while jobs run.
package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"fairway/bench/measure"
)

// plan says how much to measure.
type plan struct {
	fleets []int // pilots of each row
	jobs   int
	rounds int           // of jobs per second
	idle   time.Duration // how long idle pilots are watched; an answer is held for 25 s
}

var (
	full  = plan{fleets: []int{10, 100, 1000, 10_000}, jobs: 50_000, rounds: 3, idle: 30 * time.Second}
	short = plan{fleets: []int{10, 200}, jobs: 1000, rounds: 1, idle: time.Second}
)

// busy is how many pilots get jobs, at most. The others are idle meanwhile.
const busy = 100

// row is one line of the result.
type row struct {
	Pilots   int     `json:"pilots"`
	Bytes    float64 `json:"bytes_per_pilot"` // of the server's resident memory, above that with one pilot
	Idle     float64 `json:"idle_cores"`      // processors that the server takes while all are idle
	Jobs     float64 `json:"jobs_per_s"`
	Recovery float64 `json:"recovery_s"` // from the start of the next server until the last pilot was answered
	// ServerCores and PilotCores are the processors taken while jobs ran.
	ServerCores float64 `json:"server_cores"`
	PilotCores  float64 `json:"pilot_cores"`
	Connect     float64 `json:"connect_s"` // from the first pilot's call until all were answered
}

func main() {
	var s serverConfig
	flag.StringVar(&s.folder, "serve", "", "internal: be the server of this folder")
	flag.IntVar(&s.pilots, "launches", 0, "internal: pilots of the server")
	flag.IntVar(&s.jobs, "jobs", 0, "internal: jobs of the server")
	carry := flag.Bool("pilots", false, "internal: be pilots")
	measure.Main(func(run measure.Run) (measure.Result, error) {
		switch {
		case s.folder != "":
			return nil, serve(context.Background(), s)
		case *carry:
			return nil, bePilots()
		}
		p := full
		if run.Quick {
			p = short
		}
		if run.Only != "" { // a size of a fleet
			only, err := strconv.Atoi(run.Only)
			if err != nil {
				return nil, fmt.Errorf("-only: %w", err)
			}
			p.fleets = []int{only}
		}
		p.rounds = run.Rounds(p.rounds, p.rounds)
		rows, err := measureAll(p, run.Profile)
		return measure.Rows("", rows, row.String), err
	})
}

func (r row) String() string {
	return fmt.Sprintf("%6d pilots: %8.0f bytes each, %6.3f cores idle, %6.0f jobs/s (server %.2f cores, pilots %.2f), "+
		"served again after %.2f s (first time %.2f s)",
		r.Pilots, r.Bytes, r.Idle, r.Jobs, r.ServerCores, r.PilotCores, r.Recovery, r.Connect)
}
