package sched_test

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// read is the loop that the package comment shows.
func read(ctx context.Context, s *sched.Scheduler, fd int, buffer []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buffer)
		if err != unix.EAGAIN {
			return n, err
		}
		if err := s.WaitReadable(ctx, fd); err != nil {
			return 0, err
		}
	}
}

func ExampleScheduler_WaitReadable() {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		fmt.Println(err)
		return
	}
	defer unix.Close(ends[0])
	go func() {
		_, _ = unix.Write(ends[1], []byte("data"))
		_ = unix.Close(ends[1])
	}()
	buffer := make([]byte, 16)
	n, err := read(context.Background(), sched.Default(), ends[0], buffer)
	fmt.Println(string(buffer[:n]), err)
	// Output: data <nil>
}
