//go:build unix && !linux && !aix

package sched

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pollSet waits for descriptors with poll(2): one thread for all, which is sent
// for by a byte in a pipe when the group changes.
type pollSet struct {
	wake [2]int

	mu      sync.Mutex
	waiting map[*Request[FD, Events]]bool
}

func newPollSet() (*pollSet, error) {
	p := &pollSet{waiting: make(map[*Request[FD, Events]]bool)}
	if err := unix.Pipe(p.wake[:]); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	for _, fd := range p.wake {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			p.close()
			return nil, fmt.Errorf("set nonblocking: %w", err)
		}
	}
	return p, nil
}

func (p *pollSet) close() {
	unix.Close(p.wake[0])
	unix.Close(p.wake[1])
}

func (p *pollSet) kind() Kind[FD, Events] {
	return Kind[FD, Events]{
		Name: "fd", Group: p.group, Block: p.block, Unblock: p.unblock,
		Poll: func([]*Request[FD, Events]) { p.look(0) },
	}
}

func (p *pollSet) group(r *Request[FD, Events], joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if joined {
		p.waiting[r] = true
		return
	}
	delete(p.waiting, r)
}

func (p *pollSet) unblock() { _, _ = unix.Write(p.wake[1], []byte{1}) }

func (p *pollSet) block(limit time.Duration) {
	timeout := -1
	if limit > 0 {
		timeout = int(limit.Milliseconds()) + 1
	}
	if p.look(timeout) {
		var b [64]byte
		_, _ = unix.Read(p.wake[0], b[:])
	}
}

// look ends what is ready and reports whether the group was unblocked.
func (p *pollSet) look(timeout int) bool {
	fds := []unix.PollFd{{Fd: int32(p.wake[0]), Events: unix.POLLIN}}
	var requests []*Request[FD, Events]
	p.mu.Lock()
	for r := range p.waiting {
		fds = append(fds, unix.PollFd{Fd: int32(r.Value.Num), Events: toPoll(r.Value.Want)})
		requests = append(requests, r)
	}
	p.mu.Unlock()
	if _, err := unix.Poll(fds, timeout); err != nil {
		return false
	}
	for i, r := range requests {
		switch got := fds[i+1].Revents; {
		case got&unix.POLLNVAL != 0:
			r.Done(0, fmt.Errorf("wait for descriptor %d: %w", r.Value.Num, unix.EBADF))
		case got != 0:
			r.Done(fromPoll(got), nil)
		}
	}
	return fds[0].Revents != 0
}

func toPoll(e Events) int16 {
	var bits int16
	if e&Readable != 0 {
		bits |= unix.POLLIN
	}
	if e&Writable != 0 {
		bits |= unix.POLLOUT
	}
	return bits
}

func fromPoll(bits int16) Events {
	var e Events
	if bits&unix.POLLIN != 0 {
		e |= Readable
	}
	if bits&unix.POLLOUT != 0 {
		e |= Writable
	}
	if bits&(unix.POLLHUP|unix.POLLERR) != 0 {
		e |= Readable | Writable | Hangup
	}
	return e
}
