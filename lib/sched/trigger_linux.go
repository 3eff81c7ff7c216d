package sched

import "golang.org/x/sys/unix"

// OnEventfd is a trigger by an eventfd, as [OnReadable] is by other descriptors. The scheduler
// reads it before it polls, so that Poll need not. It must be nonblocking if others read it too.
func OnEventfd(fd int) Trigger {
	return descriptorTrigger{fd: fd, take: func(fd int) {
		var count [8]byte
		_, _ = unix.Read(fd, count[:])
	}}
}
