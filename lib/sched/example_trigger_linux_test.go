package sched_test

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// The kernel raises SIGIO when something has come to one of the sockets that have asked for it,
// and does not say to which: the kind looks at all that are waited for.
func ExampleOnSignal() {
	s := sched.New(sched.Config{})
	defer s.Close()
	type request = sched.Request[int, string]
	h := sched.Register(s, sched.Kind[int, string]{
		Name:    "asynchronous",
		Trigger: sched.OnSignal(unix.SIGIO),
		Poll: func(waiting []*request) {
			var b [64]byte
			for _, r := range waiting {
				if n, err := unix.Read(r.Value, b[:]); err != unix.EAGAIN {
					r.Done(string(b[:max(0, n)]), err)
				}
			}
		},
	})
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	for _, call := range []struct{ command, argument int }{
		{unix.F_SETOWN, os.Getpid()}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK},
	} {
		if _, err := unix.FcntlInt(uintptr(pair[0]), call.command, call.argument); err != nil {
			fmt.Println(err)
			return
		}
	}
	go func() { _, _ = unix.Write(pair[1], []byte("something has come")) }()
	fmt.Println(h.Wait(context.Background(), pair[0]))
	// Output: something has come <nil>
}
