package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
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
	s := sched.New(sched.Config{})
	defer s.Close()
	h, err := register(s, c.name)
	if err != nil {
		return err
	}
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
		wg.Go(func() { receive(ctx, h, fd) })
	}
	fmt.Println(strings.Join(ports, " "))
	if !bufio.NewScanner(os.Stdin).Scan() {
		return errors.New("no word to start")
	}
	before := h.Counts()
	took, err := compute(ctx, s, c.units)
	if err != nil {
		return err
	}
	after := h.Counts()
	fmt.Println(float64(took)/float64(time.Millisecond), after.Events-before.Events, after.Syscalls-before.Syscalls)
	return nil
}

func register(s *sched.Scheduler, name string) (*handle, error) {
	switch name {
	case "aggregated":
		return sched.NewDescriptors(s, func(k *kind) { k.Name = name })
	case "separate":
		var calls atomic.Uint64
		return sched.Register(s, kind{Name: name, Syscalls: calls.Load, Poll: func(waiting []*request) {
			calls.Add(uint64(len(waiting)))
			for _, r := range waiting {
				pollOne(r)
			}
		}}), nil
	}
	return nil, fmt.Errorf("unknown row %q", name)
}

func pollOne(r *request) {
	fds := [1]unix.PollFd{{Fd: int32(r.Value.Num), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds[:], 0); n > 0 || err != nil && err != unix.EINTR {
		r.Done(sched.Readable, err)
	}
}

// compute runs the task, which checkpoints about twice a microsecond.
func compute(ctx context.Context, s *sched.Scheduler, units int) (time.Duration, error) {
	var took time.Duration
	err := s.Run(ctx, func(t *sched.Task) error {
		start := time.Now()
		x := uint64(88172645463325252)
		for range units {
			for range 400 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			t.Checkpoint()
		}
		took = time.Since(start)
		if x == 0 {
			return errors.New("xorshift reached zero")
		}
		return nil
	})
	return took, err
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

func receive(ctx context.Context, h *handle, fd int) {
	b := make([]byte, 16)
	for {
		if _, err := h.Wait(ctx, sched.FD{Num: fd, Want: sched.Readable}); err != nil {
			unix.Close(fd)
			return
		}
		_, _, _ = unix.Recvfrom(fd, b, 0)
	}
}
