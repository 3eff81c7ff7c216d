package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

type (
	handle  = sched.Handle[sched.FD, sched.Events]
	request = sched.Request[sched.FD, sched.Events]
	kind    = sched.Kind[sched.FD, sched.Events]
)

// serve runs the task of one row beside its waiters. It prints the ports of the
// waiters, waits for a line, and then prints the time of the task in ms, and the
// events and system calls meanwhile.
func serve(c config) error {
	if c.name == "naive" {
		return serveNaively(c)
	}
	s := sched.New(sched.Config{})
	defer s.Close()
	h, err := register(s, c.name)
	if err != nil {
		return err
	}
	wait := func(ctx context.Context, fd int) error {
		_, err := h.Wait(ctx, sched.FD{Num: fd, Want: sched.Readable})
		return err
	}
	count := func() (events, syscalls uint64) { n := h.Counts(); return n.Events, n.Syscalls }
	return beside(c, wait, count, func(ctx context.Context) (time.Duration, error) { return compute(ctx, s, c.units) })
}

// serveNaively has each waiter look for itself when it is its turn.
func serveNaively(c config) error {
	runtime.GOMAXPROCS(1)
	var looks, events atomic.Uint64
	wait := func(ctx context.Context, fd int) error {
		for ctx.Err() == nil {
			looks.Add(1)
			if readable(fd) {
				events.Add(1)
				return nil
			}
			runtime.Gosched()
		}
		return ctx.Err()
	}
	count := func() (uint64, uint64) { return events.Load(), looks.Load() }
	return beside(c, wait, count, func(context.Context) (time.Duration, error) { return work(c.units, runtime.Gosched) })
}

// beside runs the task of a row beside its waiters.
func beside(
	c config, wait func(context.Context, int) error, count func() (events, syscalls uint64),
	task func(context.Context) (time.Duration, error),
) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	ports := make([]string, c.waiters)
	for i := range ports {
		fd, port, err := listen()
		if err != nil {
			return err
		}
		ports[i] = fmt.Sprint(port)
		wg.Go(func() { receive(ctx, wait, fd) })
	}
	fmt.Println(strings.Join(ports, " "))
	if !bufio.NewScanner(os.Stdin).Scan() {
		return errors.New("no word to start")
	}
	events, syscalls := count()
	took, err := task(ctx)
	if err != nil {
		return err
	}
	eventsNow, syscallsNow := count()
	fmt.Println(float64(took)/float64(time.Millisecond), eventsNow-events, syscallsNow-syscalls)
	return nil
}

func register(s *sched.Scheduler, name string) (*handle, error) {
	switch name {
	case "aggregated":
		return sched.NewDescriptors(s, func(k *kind) { k.Name = name })
	case "grouped-polling":
		return sched.NewDescriptors(s, func(k *kind) { k.Name, k.Strategy, k.Eager = name, sched.PollOnly, -1 })
	case "separate":
		var calls atomic.Uint64
		return sched.Register(s, kind{Name: name, Eager: -1, Syscalls: calls.Load, Poll: func(waiting []*request) {
			calls.Add(uint64(len(waiting)))
			for _, r := range waiting {
				pollOne(r)
			}
		}}), nil
	}
	return nil, fmt.Errorf("unknown row %q", name)
}

func pollOne(r *request) {
	if readable(r.Value.Num) {
		r.Done(sched.Readable, nil)
	}
}

func readable(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || err != nil && err != unix.EINTR // then the read says what is wrong
}

// compute runs the task, which checkpoints about twice a microsecond.
func compute(ctx context.Context, s *sched.Scheduler, units int) (took time.Duration, err error) {
	err = s.Run(ctx, func(t *sched.Task) error {
		took, err = work(units, t.Checkpoint)
		return err
	})
	return took, err
}

// work calls between after each unit.
func work(units int, between func()) (time.Duration, error) {
	start := time.Now()
	x := uint64(88172645463325252)
	for range units {
		for range 400 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		between()
	}
	if x == 0 {
		return 0, errors.New("xorshift reached zero")
	}
	return time.Since(start), nil
}

// listen opens a socket and returns it with its port.
func listen() (fd, port int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, 0, fmt.Errorf("bind: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, 0, fmt.Errorf("getsockname: %w", err)
	}
	return fd, name.(*unix.SockaddrInet4).Port, nil
}

func receive(ctx context.Context, wait func(context.Context, int) error, fd int) {
	b := make([]byte, 16)
	for {
		if err := wait(ctx, fd); err != nil {
			unix.Close(fd)
			return
		}
		_, _, _ = unix.Recvfrom(fd, b, 0)
	}
}
