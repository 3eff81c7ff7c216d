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
// and cpu_s that of the pilots between the two moments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"fairway/bench/measure"
	testprogram "fairway/test/program"
)

// row is one line of the result.
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
}

// report is what -json prints.
type report struct {
	Rows    []row           `json:"rows"`
	MB      int             `json:"mb"`   // size of the file
	Mbit    int             `json:"mbit"` // of each link, per second
	Rounds  int             `json:"rounds"`
	Machine measure.Machine `json:"machine"`
}

// scratch has the folders of hosts: their files are large, and not to be in memory.
const scratch = "/var/tmp"

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	mb := flag.Int("mb", 256, "size of the file, in `MB`")
	mbit := flag.Int("mbit", 1000, "what each link carries, in `Mbit/s`")
	rounds := flag.Int("rounds", 3, "rounds to measure")
	hosts := flag.String("hosts", "2,4,8,16", "numbers of hosts")
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
	self := filepath.Join(host.TempDir(), "spread") // where hosts see it
	if out, err := exec.Command("cp", measure.Self().Path, self).CombinedOutput(); err != nil {
		host.Fatalf("%v: %s", err, out)
	}
	for _, text := range strings.Split(*hosts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxHosts {
			host.Fatalf("-hosts %s: write numbers from 1 to %d", *hosts, maxHosts)
		}
		if err := r.measure(ctx, fairway, self, n); err != nil {
			host.Fatal(err)
		}
	}
	if *asJSON {
		measure.ExitOn(measure.PrintJSON(r))
		return
	}
	for _, w := range r.Rows {
		fmt.Printf("%3d hosts: %6.2f s passed on (%.2f s of processors), %6.2f s from the server, ideal %5.2f s, ratio %.2f, floor %.2f s (%.2f), with TLS %.2f s (%.2f)\n",
			w.Hosts, w.Seconds, w.CPU, w.ElementOnly, w.Ideal, w.Ratio, w.Floor, w.FloorCPU, w.FloorTLS, w.FloorTLSCPU)
	}
}

// measure adds the row of a number of hosts.
func (r *report) measure(ctx context.Context, fairway, self string, n int) error {
	var seconds, cpu [4][]float64
	for range r.Rounds {
		if err := r.round(ctx, fairway, self, n, func(way int, took spread) {
			seconds[way], cpu[way] = append(seconds[way], took.seconds), append(cpu[way], took.cpu)
		}); err != nil {
			return fmt.Errorf("%d hosts: %w", n, err)
		}
	}
	w := row{
		Hosts: n, Seconds: measure.Median(seconds[0]), CPU: measure.Median(cpu[0]), ElementOnly: measure.Median(seconds[1]),
		Ideal: float64(r.MB) * 8 / float64(r.Mbit),
		Floor: measure.Median(seconds[2]), FloorCPU: measure.Median(cpu[2]),
		FloorTLS: measure.Median(seconds[3]), FloorTLSCPU: measure.Median(cpu[3]),
	}
	w.Ratio = w.Seconds / w.Ideal
	r.Rows = append(r.Rows, w)
	return nil
}

// round goes each way once, on hosts of its own: what these have cached and written is removed
// before the next.
func (r *report) round(ctx context.Context, fairway, self string, n int, done func(way int, took spread)) error {
	host := measure.NewHost("spread", scratch)
	defer host.End()
	c := newCluster(host, n, r.Mbit)
	for i, way := range []func() (spread, error){
		func() (spread, error) { return c.run(ctx, fairway, "global", r.MB) },
		func() (spread, error) { return c.run(ctx, fairway, "pilot", r.MB) },
		func() (spread, error) { return c.floor(ctx, self, false, r.MB) },
		func() (spread, error) { return c.floor(ctx, self, true, r.MB) },
	} {
		took, err := way()
		if err != nil {
			return err
		}
		done(i, took)
	}
	return nil
}
