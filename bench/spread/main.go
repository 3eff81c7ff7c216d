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
	host := measure.NewHost("spread", "/var/tmp")
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
		if err := r.measure(ctx, host, fairway, self, n); err != nil {
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
func (r *report) measure(ctx context.Context, host *measure.Host, fairway, self string, n int) error {
	c := newCluster(host, n, r.Mbit)
	ways := []func() (spread, error){
		func() (spread, error) { return c.run(ctx, fairway, "global", r.MB) },
		func() (spread, error) { return c.run(ctx, fairway, "pilot", r.MB) },
		func() (spread, error) { return c.floor(ctx, self, false, r.MB) },
		func() (spread, error) { return c.floor(ctx, self, true, r.MB) },
	}
	seconds, cpu := make([][]float64, len(ways)), make([][]float64, len(ways))
	for range r.Rounds {
		for i, way := range ways {
			took, err := way()
			if err != nil {
				return fmt.Errorf("%d hosts: %w", n, err)
			}
			seconds[i], cpu[i] = append(seconds[i], took.seconds), append(cpu[i], took.cpu)
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
