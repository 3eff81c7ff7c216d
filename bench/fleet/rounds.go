package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"fairway/bench/measure"
	"fairway/bench/measure/lightpilot"
	"fairway/internal/server/folder"
	"fairway/lib/subprocess"
)

const (
	// patience bounds the wait for anything.
	patience = 3 * time.Minute
	// look is how often the pilots are asked how far they are. What is measured
	// comes out so much too long at most.
	look = 5 * time.Millisecond
	// perProcess is how many pilots live in one process, at most.
	perProcess = 2500
	// spareFiles are open files beside one for each pilot.
	spareFiles = 1000
)

func measureAll(p plan, profile string) ([]row, error) {
	if err := raiseFiles(p.fleets); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	one, err := idleRow(scratch, p, 1)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, n := range p.fleets {
		r, err := idleRow(scratch, p, n)
		if err != nil {
			return nil, fmt.Errorf("%d idle pilots: %w", n, err)
		}
		r.Bytes = (r.Bytes - one.Bytes) / float64(n-1)
		if err := r.jobs(scratch, p, profile); err != nil {
			return nil, fmt.Errorf("jobs with %d pilots: %w", n, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// raiseFiles lets this process and its children open as many files as the largest
// fleet needs.
func raiseFiles(fleets []int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for _, n := range fleets {
		needed := uint64(n + spareFiles)
		limit.Cur, limit.Max = max(limit.Cur, needed), max(limit.Max, needed)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%d open files, which the largest fleet needs: %w; `ulimit -n` shows the limit, and root may "+
			"raise it", limit.Cur, err)
	}
	return nil
}

// fleet is a server with its pilots.
type fleet struct {
	config serverConfig
	server *subprocess.Child
	crowds []*subprocess.Child
	// connect is how long it took until all pilots were answered.
	connect time.Duration
}

// launchServer starts a server and pilots, of which so many get jobs.
func launchServer(scratch string, pilots, jobs, busy int) (f *fleet, err error) {
	f = &fleet{config: serverConfig{pilots: pilots, jobs: jobs}}
	if f.config.folder, err = os.MkdirTemp(scratch, "run"); err != nil {
		return nil, err
	}
	if err = f.serve(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.end()
		}
	}()
	if _, err = f.server.Hear(); err != nil {
		return nil, err
	}
	places, err := folder.Of(f.config.folder)
	if err != nil {
		return nil, err
	}
	files := lightpilot.Connections(places.Pilots)
	if len(files) != pilots {
		return nil, fmt.Errorf("%d connection files of %d launches", len(files), pilots)
	}
	for range (pilots + perProcess - 1) / perProcess {
		c, err := subprocess.Start(subprocess.Self("-pilots"))
		if err != nil {
			return nil, err
		}
		f.crowds = append(f.crowds, c)
	}
	began := time.Now()
	for i, file := range files {
		order := "pilot "
		if i < busy {
			order = "busy "
		}
		if err := f.crowds[i%len(f.crowds)].Tell(order + file); err != nil {
			return nil, err
		}
	}
	err = f.await(func(served, _ int) bool { return served == pilots })
	f.connect = time.Since(began)
	return f, err
}

// serve starts the server, or another one after it.
func (f *fleet) serve() (err error) {
	f.server, err = subprocess.Start(subprocess.Self("-serve", f.config.folder, "-launches", strconv.Itoa(f.config.pilots),
		"-jobs", strconv.Itoa(f.config.jobs)))
	return err
}

func (f *fleet) end() {
	f.server.Kill()
	for _, c := range f.crowds {
		c.Kill()
	}
	_ = os.RemoveAll(f.config.folder)
}

func (f *fleet) tell(order string) error {
	var failures []error
	for _, c := range f.crowds {
		failures = append(failures, c.Tell(order))
	}
	return errors.Join(failures...)
}

// await asks the pilots how many are served and how many jobs have ended, until that
// is enough.
func (f *fleet) await(enough func(served, ended int) bool) error {
	for until := time.Now().Add(patience); ; time.Sleep(look) {
		served, ended := 0, 0
		for _, c := range f.crowds {
			answer, err := c.Ask("count")
			if err != nil {
				return err
			}
			var s, e int
			if _, err := fmt.Sscan(answer, &s, &e); err != nil {
				return fmt.Errorf("%q: %w", answer, err)
			}
			served, ended = served+s, ended+e
		}
		if enough(served, ended) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %v %d pilots are served and %d jobs have ended", patience, served, ended)
		}
	}
}

// idleRow measures what n idle pilots cost, and how soon they are served again. The
// one job is for none of them. Its Bytes are those of the whole server.
func idleRow(scratch string, p plan, n int) (row, error) {
	f, err := launchServer(scratch, n, 1, 0)
	if err != nil {
		return row{}, err
	}
	defer f.end()
	r := row{Pilots: n, Connect: f.connect.Seconds()}
	before := measure.ProcessorTime(f.server.Process().Pid)
	time.Sleep(p.idle)
	r.Idle = (measure.ProcessorTime(f.server.Process().Pid) - before).Seconds() / p.idle.Seconds()
	if r.Bytes, err = measure.ResidentMemory(f.server.Process().Pid); err != nil {
		return row{}, err
	}
	if err := f.tell("again"); err != nil {
		return row{}, err
	}
	f.server.Kill()
	began := time.Now()
	if err := f.serve(); err != nil {
		return row{}, err
	}
	err = f.await(func(served, _ int) bool { return served == n })
	r.Recovery = time.Since(began).Seconds()
	return r, err
}

// jobs measures jobs per second in a fleet of which the busy ones get jobs.
func (r *row) jobs(scratch string, p plan, profile string) error {
	var rates, server, pilots []float64
	for range p.rounds {
		f, err := launchServer(scratch, r.Pilots, p.jobs, busy)
		if err != nil {
			return err
		}
		rate, serverCores, pilotCores, err := f.work(profile)
		f.end()
		if err != nil {
			return err
		}
		rates, server, pilots = append(rates, rate), append(server, serverCores), append(pilots, pilotCores)
	}
	r.Jobs, r.ServerCores, r.PilotCores = measure.Median(rates), measure.Median(server), measure.Median(pilots)
	return nil
}

func (f *fleet) work(profile string) (rate, serverCores, pilotCores float64, err error) {
	if profile != "" {
		if err := f.server.Tell(profile); err != nil {
			return 0, 0, 0, err
		}
	}
	crowds := func() (sum time.Duration) {
		for _, c := range f.crowds {
			sum += measure.ProcessorTime(c.Process().Pid)
		}
		return sum
	}
	server, pilots, began := measure.ProcessorTime(f.server.Process().Pid), crowds(), time.Now()
	if err := f.tell("work"); err != nil {
		return 0, 0, 0, err
	}
	// The last jobs are left out: they end with the run, and the server with them.
	jobs := f.config.jobs * 9 / 10
	ended := 0
	if err := f.await(func(_, e int) bool { ended = e; return e >= jobs }); err != nil {
		return 0, 0, 0, err
	}
	took := time.Since(began).Seconds()
	serverCores = (measure.ProcessorTime(f.server.Process().Pid) - server).Seconds() / took
	pilotCores = (crowds() - pilots).Seconds() / took
	if profile != "" {
		_, err = f.server.Ask("")
	}
	return float64(ended) / took, serverCores, pilotCores, err
}
