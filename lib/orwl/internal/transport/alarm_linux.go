package transport

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at a time that others may set. It is a descriptor in the
// network poller and not a timer of the Go runtime, because with such a timer
// pending every wait of an idle thread is one with a timeout: the kernel arms and
// disarms a timer for each message, which costs microseconds on a virtual machine.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "alarm")}, nil
}

// set has the alarm go off once after d, which is positive, and forgets what it
// was set to before. Any goroutine may call it.
func (a *alarm) set(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if c, err := a.file.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	}
}

// wait returns when the alarm goes off, or false when it is closed.
func (a *alarm) wait() bool {
	var expirations [8]byte
	_, err := a.file.Read(expirations[:])
	return err == nil
}

func (a *alarm) close() { a.file.Close() }
