package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// serverConfig is what one server process does.
type serverConfig struct {
	mode        string
	computing   int
	checkpoints bool
	priorities  int
}

// serve runs the echo server of one row. It prints its port, and then the units
// of work done so far for every line it reads, until there are none.
func serve(c serverConfig) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	var stop atomic.Bool
	counters := make([]counter, c.computing)
	echo, err := c.start(counters, &stop)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- echo(conn.(*net.TCPConn)) }()
	go reportWork(os.Stdin, counters)
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// reportWork tells the work done so far on request. It sits on a locked thread,
// as the row's own way of waiting is not what is to be measured here.
func reportWork(in io.Reader, counters []counter) {
	runtime.LockOSThread()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Println(total(counters), time.Now().UnixNano())
	}
	os.Exit(0)
}

// takeDescriptor takes conn's connection away from the runtime's own poller.
func takeDescriptor(conn *net.TCPConn) (int, error) {
	f, err := conn.File()
	if err != nil {
		return 0, err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return fd, errors.Join(err, f.Close(), conn.Close())
}

type echoFunc func(*net.TCPConn) error

// start begins the computing and returns how to answer.
func (c serverConfig) start(counters []counter, stop *atomic.Bool) (echoFunc, error) {
	switch c.mode {
	case "plain", "netconn":
		return echoNetConn, plain(counters, stop)
	case "gosched":
		return echoGosched, plain(counters, stop)
	case "locked-thread":
		return echoLocked, plain(counters, stop)
	}
	strategy, ok := map[string]sched.Strategy{
		"sched-poll": sched.PollOnly, "sched-eager": sched.PollOnly,
		"sched-block": sched.BlockOnly, "sched-adaptive": sched.Adaptive,
	}[c.mode]
	if !ok {
		return nil, fmt.Errorf("unknown mode %q", c.mode)
	}
	s := sched.New(sched.Config{Priorities: sched.Priorities(c.priorities)})
	fds, err := sched.NewDescriptors(s, func(k *sched.Kind[sched.FD, sched.Events]) {
		k.Strategy = strategy
		k.Interval = pollInterval
		if c.mode == "sched-poll" {
			k.Eager = -1
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range counters {
		s.Go(context.Background(), func(t *sched.Task) error {
			between := func() {}
			if c.checkpoints {
				between = t.Checkpoint
			}
			counters[i].compute(stop, between)
			return nil
		})
	}
	return func(conn *net.TCPConn) error { return echoSched(fds, conn) }, nil
}

const pollInterval = time.Millisecond

func plain(counters []counter, stop *atomic.Bool) error {
	for i := range counters {
		go counters[i].compute(stop, func() {})
	}
	return nil
}

func echoNetConn(conn *net.TCPConn) error {
	b := make([]byte, 64)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return err
		}
		if _, err := conn.Write(b[:n]); err != nil {
			return err
		}
	}
}

func echoGosched(conn *net.TCPConn) error {
	return echoRaw(conn, true, func(int) error { runtime.Gosched(); return nil })
}

func echoLocked(conn *net.TCPConn) error {
	runtime.LockOSThread()
	return echoRaw(conn, false, func(int) error { return nil })
}

func echoSched(fds *sched.Handle[sched.FD, sched.Events], conn *net.TCPConn) error {
	ctx := context.Background()
	return echoRaw(conn, true, func(fd int) error {
		_, err := fds.Wait(ctx, sched.FD{Num: fd, Want: sched.Readable})
		return err
	})
}

// echoRaw answers on the descriptor itself and calls wait whenever there is
// nothing to read.
func echoRaw(conn *net.TCPConn, nonblock bool, wait func(fd int) error) error {
	fd, err := takeDescriptor(conn)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetNonblock(fd, nonblock); err != nil {
		return err
	}
	b := make([]byte, 64)
	for {
		n, err := unix.Read(fd, b)
		switch {
		case errors.Is(err, unix.EAGAIN):
			err = wait(fd)
		case errors.Is(err, unix.EINTR):
			err = nil
		case err == nil && n == 0:
			err = io.EOF
		case err == nil:
			_, err = unix.Write(fd, b[:n])
		}
		if err != nil {
			return err
		}
	}
}
