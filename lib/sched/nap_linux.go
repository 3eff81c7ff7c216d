package sched

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// napper sleeps more exactly than the timers of the Go runtime, which are rounded
// up to milliseconds when all is idle. The time runs in a timer descriptor that
// the runtime's poller waits for. A thread that sleeps in a system call instead
// would keep its P until the runtime takes that away, and a runtime that has to
// do so for every nap watches its threads fifty times a millisecond.
type napper struct {
	file *os.File
	raw  syscall.RawConn
}

func newNapper() (*napper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	n := &napper{file: os.NewFile(uintptr(fd), "timer")}
	if n.raw, err = n.file.SyscallConn(); err != nil {
		n.file.Close()
		return nil, err
	}
	return n, nil
}

// set has the next wait end after d, which is positive, or the one that is going
// on if there is one. It reports whether that will be so.
func (n *napper) set(d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	var err error
	controlErr := n.raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	return controlErr == nil && err == nil
}

// wait sleeps until the time that was set, and reports whether it did.
func (n *napper) wait() bool {
	var err error
	waitErr := n.raw.Read(func(fd uintptr) bool {
		var b [8]byte
		_, err = unix.Read(int(fd), b[:])
		return err != unix.EAGAIN
	})
	return waitErr == nil && err == nil
}

func (n *napper) close() { n.file.Close() }
