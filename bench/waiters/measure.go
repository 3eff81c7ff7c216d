package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/subprocess"
)

type row struct {
	Name     string  `json:"name"`
	Waiters  int     `json:"waiters"`
	TaskMS   float64 `json:"task_ms"`
	Syscalls float64 `json:"syscalls_per_event"`
}

// run is what one process showed.
type run struct {
	ms               float64
	events, syscalls float64
}

// measureAll measures all rows, and tells each after each of its runs: the round, from 1, and the row
// as it is by then. In the last round rows come in the order of the table.
func measureAll(p plan, tell func(round int, r row)) ([]row, error) {
	runtime.LockOSThread()
	var list []config
	for _, name := range rowNames {
		for _, n := range p.waiters[name] {
			list = append(list, config{name, n, p.units})
		}
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	runs := make([][]run, len(list))
	rows := make([]row, len(list))
	for round := 1; round <= p.rounds; round++ {
		order := random.Perm(len(list))
		if round == p.rounds {
			slices.Sort(order)
		}
		for _, i := range order {
			r, err := measureOne(list[i], p, random)
			if err != nil {
				return nil, fmt.Errorf("%s with %d waiters: %w", list[i].name, list[i].waiters, err)
			}
			runs[i] = append(runs[i], r)
			rows[i] = summary(list[i], runs[i])
			tell(round, rows[i])
		}
	}
	return rows, nil
}

func summary(c config, runs []run) row {
	var events, syscalls float64
	for _, r := range runs {
		events += r.events
		syscalls += r.syscalls
	}
	slices.SortFunc(runs, func(a, b run) int { return int(1e6 * (a.ms - b.ms)) })
	return row{c.name, c.waiters, runs[len(runs)/2].ms, syscalls / max(events, 1)}
}

// measureOne runs one process and sends messages until it is done.
func measureOne(c config, p plan, random *rand.Rand) (r run, err error) {
	server, err := subprocess.Start(subprocess.Self("-serve", c.name, "-waiters", strconv.Itoa(c.waiters), "-units",
		strconv.Itoa(c.units)))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	line, err := server.Hear()
	if err != nil {
		return r, err
	}
	ports, err := parsePorts(line)
	if err != nil {
		return r, err
	}
	if err := server.Tell("go"); err != nil {
		return r, err
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- send(ports, p.pause, random, stop) }()
	line, err = server.Hear()
	close(stop)
	if err := errors.Join(err, <-stopped); err != nil {
		return r, err
	}
	_, err = fmt.Sscan(line, &r.ms, &r.events, &r.syscalls)
	return r, err
}

func parsePorts(line string) ([]int, error) {
	var ports []int
	for word := range strings.FieldsSeq(line) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		ports = append(ports, n)
	}
	if len(ports) == 0 {
		return nil, errors.New("no ports")
	}
	return ports, nil
}

// send sends messages to random ports at random moments until stop is closed.
func send(ports []int, mean time.Duration, random *rand.Rand, stop <-chan struct{}) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Duration(random.ExpFloat64() * float64(mean))):
		}
		to := &unix.SockaddrInet4{Port: ports[random.IntN(len(ports))], Addr: [4]byte{127, 0, 0, 1}}
		if err := unix.Sendto(fd, []byte("event"), 0, to); err != nil && err != unix.ECONNREFUSED {
			return err
		}
	}
}

var heading = fmt.Sprintf("%-16s %8s %10s %18s", "name", "waiters", "task ms", "syscalls per event")

func (r row) String() string {
	return fmt.Sprintf("%-16s %8d %10.1f %18.1f", r.Name, r.Waiters, r.TaskMS, r.Syscalls)
}
