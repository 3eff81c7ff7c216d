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
	short = plan{fleets: []int{10, 200}, jobs: 5000, rounds: 1, idle: 2 * time.Second}
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
	asJSON := flag.Bool("json", false, "print one JSON object")
	quick := flag.Bool("quick", false, "two small fleets and few jobs, for development")
	only := flag.Int("only", 0, "measure only a fleet of this size")
	rounds := flag.Int("rounds", 0, "rounds of jobs per second; 0 for the usual number")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the server while jobs run to this file")
	var s serverConfig
	flag.StringVar(&s.folder, "serve", "", "internal: be the server of this folder")
	flag.IntVar(&s.pilots, "launches", 0, "internal: pilots of the server")
	flag.IntVar(&s.jobs, "jobs", 0, "internal: jobs of the server")
	carry := flag.Bool("pilots", false, "internal: be pilots")
	flag.Parse()
	switch {
	case s.folder != "":
		measure.ExitOn(serve(context.Background(), s))
		return
	case *carry:
		measure.ExitOn(bePilots())
		return
	}
	p := full
	if *quick {
		p = short
	}
	if *only > 0 {
		p.fleets = []int{*only}
	}
	if *rounds > 0 {
		p.rounds = *rounds
	}
	rows, err := measureAll(p, *profile)
	measure.ExitOn(err)
	measure.ExitOn(measure.Print(rows, *asJSON, row.String))
}

func (r row) String() string {
	return fmt.Sprintf("%6d pilots: %8.0f bytes each, %6.3f cores idle, %6.0f jobs/s (server %.2f cores, pilots %.2f), "+
		"served again after %.2f s (first time %.2f s)",
		r.Pilots, r.Bytes, r.Idle, r.Jobs, r.ServerCores, r.PilotCores, r.Recovery, r.Connect)
}
