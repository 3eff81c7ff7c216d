// Command spread measures how long it takes until a file that many hosts need at the
// same time is on all of them: when pilots pass it on (`cache: global`), and when each
// reads it from the server (`cache: pilot`).
//
//	go run ./bench/spread -json
//
// Each host is a network namespace behind a link of its own, and sees neither the
// folder of the workflow nor the files of another host. The server has such a link too.
// All are on one switch. The run is a real one, with a pilot on each host: first a job
// on each host waits until all are there, then another one needs the file. The time
// counts from when all were there until the last of these has it. The ideal is the time
// that the file takes over one link. Rounds of all ways alternate. Needs root.
//
// All hosts share the processors of one machine, so the floor is measured too: a chain of
// the plainest programs, without and with TLS. Its processor time is that of all of them,
// and cpu_s that of the pilots between the two moments. With -peers, TaskVine brings the file
// to the same hosts: with one task on each that needs it, and as a tree of its workers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"fairway/bench/measure"
	"fairway/lib/subprocess"
	testprogram "fairway/test/program"
)

// row is one line of the result. What was not measured is 0.
type row struct {
	Hosts       int     `json:"hosts"`
	Seconds     float64 `json:"seconds"`
	ElementOnly float64 `json:"element_only_s"`
	Ideal       float64 `json:"ideal_s"`
	Ratio       float64 `json:"ratio"` // of seconds to ideal_s
	CPU         float64 `json:"cpu_s"`
	Floor       float64 `json:"floor_s"`
	FloorCPU    float64 `json:"floor_cpu_s"`
	FloorTLS    float64 `json:"floor_tls_s"`
	FloorTLSCPU float64 `json:"floor_tls_cpu_s"`
	// Of TaskVine: each worker reads the file from the server; and they pass it on.
	VineEach    float64 `json:"taskvine_each_s"`
	VineEachCPU float64 `json:"taskvine_each_cpu_s"`
	VineTree    float64 `json:"taskvine_tree_s"`
	VineTreeCPU float64 `json:"taskvine_tree_cpu_s"`
}

// report is what -json prints.
type report struct {
	Rows    []*row          `json:"rows"`
	MB      int             `json:"mb"`   // size of the file
	Mbit    int             `json:"mbit"` // of each link, per second
	Rounds  int             `json:"rounds"`
	Machine measure.Machine `json:"machine"`
}

// programs are what runs on the hosts.
type programs struct {
	fairway  string
	relay    string    // this program
	taskvine *taskvine // nil: it is not measured
}

// scratch has the folders of hosts: their files are large, and not to be in memory.
const scratch = "/var/tmp"

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	mb := flag.Int("mb", 256, "size of the file, in `MB`")
	mbit := flag.Int("mbit", 1000, "what each link carries, in `Mbit/s`")
	rounds := flag.Int("rounds", 3, "rounds to measure")
	hosts := flag.String("hosts", "2,4,8,16", "numbers of hosts")
	only := flag.String("only", "", "measure only these ways, separated by commas: pilots, server, floor, tls, "+
		"vine-each, vine-tree")
	peers := flag.Bool("peers", false, "measure TaskVine too, of the Python that "+pythonVariable+
		" names, with the worker that "+vineVariable+" names")
	asRelay := flag.Bool("relay", false, "for the benchmark itself")
	flag.Parse()
	if *asRelay {
		measure.ExitOn(relay(flag.Args()))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // the hosts are to go
	defer stop()
	host := measure.NewHost("spread", scratch)
	defer host.End()
	r := &report{MB: *mb, Mbit: *mbit, Rounds: *rounds, Machine: measure.ThisMachine()}
	fairway, err := testprogram.Build(host.TempDir())
	if err != nil {
		host.Fatal(err)
	}
	p := programs{fairway: fairway, relay: filepath.Join(host.TempDir(), "spread")}
	if *peers {
		if p.taskvine, err = findTaskvine(); err != nil {
			host.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", subprocess.Self().Path, p.relay).CombinedOutput(); err != nil { // where hosts see it
		host.Fatalf("%v: %s", err, out)
	}
	for _, text := range strings.Split(*hosts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxHosts {
			host.Fatalf("-hosts %s: write numbers from 1 to %d", *hosts, maxHosts)
		}
		if err := r.measure(ctx, p, n, *only); err != nil {
			host.Fatal(err)
		}
	}
	if *asJSON {
		measure.ExitOn(measure.PrintJSON(r))
		return
	}
	for _, w := range r.Rows {
		fmt.Printf("%3d hosts: %6.2f s passed on (%.2f s of processors), %6.2f s from the server, ideal %5.2f s, ratio "+
			"%.2f, floor %.2f s (%.2f), with TLS %.2f s (%.2f)",
			w.Hosts, w.Seconds, w.CPU, w.ElementOnly, w.Ideal, w.Ratio, w.Floor, w.FloorCPU, w.FloorTLS, w.FloorTLSCPU)
		if p.taskvine != nil {
			fmt.Printf(", TaskVine %.2f s (%.2f), as a tree %.2f s (%.2f)", w.VineEach, w.VineEachCPU, w.VineTree, w.VineTreeCPU)
		}
		fmt.Println()
	}
}

// way is one way of the file to the hosts.
type way struct {
	name         string // for -only
	run          func(c *cluster) (spread, error)
	median       [2]*float64 // where the median of the seconds goes, and that of the processor time
	seconds, cpu []float64   // of each round
}

// measure adds the row of a number of hosts.
func (r *report) measure(ctx context.Context, p programs, n int, only string) error {
	w := &row{Hosts: n, Ideal: float64(r.MB) * 8 / float64(r.Mbit)}
	var untold float64
	ways := []*way{
		{name: "pilots", median: [2]*float64{&w.Seconds, &w.CPU}, run: func(c *cluster) (spread, error) {
			return c.run(ctx, p.fairway, "global", r.MB)
		}},
		{name: "server", median: [2]*float64{&w.ElementOnly, &untold}, run: func(c *cluster) (spread, error) {
			return c.run(ctx, p.fairway, "pilot", r.MB)
		}},
		{name: "floor", median: [2]*float64{&w.Floor, &w.FloorCPU}, run: func(c *cluster) (spread, error) {
			return c.floor(ctx, p.relay, false, r.MB)
		}},
		{name: "tls", median: [2]*float64{&w.FloorTLS, &w.FloorTLSCPU}, run: func(c *cluster) (spread, error) {
			return c.floor(ctx, p.relay, true, r.MB)
		}},
	}
	if p.taskvine != nil {
		ways = append(ways,
			&way{name: "vine-each", median: [2]*float64{&w.VineEach, &w.VineEachCPU}, run: func(c *cluster) (spread, error) {
				return p.taskvine.run(ctx, c, "each", r.MB)
			}}, &way{name: "vine-tree", median: [2]*float64{&w.VineTree, &w.VineTreeCPU}, run: func(c *cluster) (spread, error) {
				return p.taskvine.run(ctx, c, "tree", r.MB)
			}})
	}
	if only != "" {
		ways = slices.DeleteFunc(ways, func(w *way) bool { return !slices.Contains(strings.Split(only, ","), w.name) })
		if len(ways) == 0 {
			return fmt.Errorf("-only %s: no way that is to be measured has such a name", only)
		}
	}
	for range r.Rounds {
		if err := r.round(n, ways); err != nil {
			return fmt.Errorf("%d hosts: %w", n, err)
		}
	}
	for _, way := range ways {
		*way.median[0], *way.median[1] = measure.Median(way.seconds), measure.Median(way.cpu)
	}
	w.Ratio = w.Seconds / w.Ideal
	r.Rows = append(r.Rows, w)
	return nil
}

// round goes each way once, on hosts of its own: what these have cached and written is removed
// before the next.
func (r *report) round(n int, ways []*way) error {
	host := measure.NewHost("spread", scratch)
	defer host.End()
	c := newCluster(host, n, r.Mbit)
	for _, way := range ways {
		took, err := way.run(c)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		way.seconds, way.cpu = append(way.seconds, took.seconds), append(way.cpu, took.cpu)
	}
	return nil
}
