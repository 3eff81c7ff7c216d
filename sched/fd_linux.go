package sched

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollBatch bounds the events taken from the kernel by one call.
const epollBatch = 128

// pollSet is one epoll with all descriptors that are waited for. Every
// registration is one-shot: it fires once and is armed again by the next wait,
// so nothing is reported that nobody asked for.
type pollSet struct {
	epfd, wakefd int

	mu    sync.Mutex
	files map[int32]*pollFile
}

// pollFile is what is known of one descriptor number. An event bears the
// generation of the arming it comes from; those of earlier armings, or of an
// earlier file with the same number, are stale and dropped. That loses nothing,
// since arming again reports a state that still holds.
type pollFile struct {
	generation int32
	known      bool // the kernel may have a registration
	waiting    []*Request[FD, Events]
}

func newPollSet() (*pollSet, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epfd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &pollSet{epfd: epfd, wakefd: wakefd, files: make(map[int32]*pollFile)}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wakefd)}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wakefd, &ev); err != nil {
		p.close()
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	return p, nil
}

func (p *pollSet) close() {
	unix.Close(p.wakefd)
	unix.Close(p.epfd)
}

func (p *pollSet) kind() Kind[FD, Events] {
	return Kind[FD, Events]{
		Name: "fd", Poll: p.poll, Group: p.group,
		Block: p.block, Unblock: p.unblock, Concurrent: true,
	}
}

func (p *pollSet) group(r *Request[FD, Events], joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fd := int32(r.Value.Num)
	f := p.files[fd]
	if joined {
		if f == nil {
			f = &pollFile{}
			p.files[fd] = f
		}
		f.waiting = append(f.waiting, r)
		p.arm(fd, f)
		return
	}
	p.leave(fd, f, r)
}

// leave forgets r. When nobody is left who waits for the descriptor, a
// registration that has not fired is removed.
func (p *pollSet) leave(fd int32, f *pollFile, r *Request[FD, Events]) {
	if f == nil {
		return
	}
	for i, w := range f.waiting {
		if w == r {
			f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
			if len(f.waiting) == 0 {
				p.drop(fd)
			}
			return
		}
	}
}

func (p *pollSet) drop(fd int32) {
	_ = unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, int(fd), nil)
	delete(p.files, fd)
}

// arm registers what all waiters of a descriptor want together.
func (p *pollSet) arm(fd int32, f *pollFile) {
	f.generation++
	ev := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: fd, Pad: f.generation}
	for _, r := range f.waiting {
		ev.Events |= toEpoll(r.Value.Want)
	}
	if err := p.control(f, &ev); err != nil {
		p.refuse(fd, f, err)
	}
}

// control tells the kernel, which knows better than pollFile whether the number
// still means the same file.
func (p *pollSet) control(f *pollFile, ev *unix.EpollEvent) error {
	first, second, retry := unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_MOD, unix.EEXIST
	if f.known {
		first, second, retry = second, first, unix.ENOENT
	}
	f.known = true
	err := epollControl(p.epfd, first, ev)
	if err == retry {
		err = epollControl(p.epfd, second, ev)
	}
	if err != 0 {
		return err
	}
	return nil
}

// refuse ends the waits for a descriptor that epoll does not take. Files that
// are always ready are among them.
func (p *pollSet) refuse(fd int32, f *pollFile, err error) {
	delete(p.files, fd)
	for _, r := range f.waiting {
		if err == unix.EPERM {
			r.Done(r.Value.Want, nil)
			continue
		}
		r.Done(0, fmt.Errorf("wait for descriptor %d: %w", fd, err))
	}
}

func (p *pollSet) poll([]*Request[FD, Events]) {
	var events [epollBatch]unix.EpollEvent
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epfd),
		uintptr(unsafe.Pointer(&events[0])), epollBatch, 0, 0, 0)
	if err == 0 {
		p.handle(events[:n])
	}
}

func (p *pollSet) block(limit time.Duration) {
	var events [epollBatch]unix.EpollEvent
	timeout := -1
	if limit > 0 {
		timeout = int(limit.Milliseconds()) + 1
	}
	n, err := unix.EpollWait(p.epfd, events[:], timeout)
	if err != nil {
		return
	}
	for i := range events[:n] {
		if events[i].Fd == int32(p.wakefd) {
			var b [8]byte
			_, _ = unix.Read(p.wakefd, b[:])
		}
	}
	p.handle(events[:n])
}

func (p *pollSet) unblock() {
	_, _ = unix.Write(p.wakefd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// handle ends the requests that events answer. Done is called without the lock,
// since it may come back to group.
func (p *pollSet) handle(events []unix.EpollEvent) {
	var store [epollBatch]*Request[FD, Events]
	for i := range events {
		got := fromEpoll(events[i].Events)
		for _, r := range p.answered(&events[i], got, store[:0]) {
			r.Done(got&(r.Value.Want|Hangup), nil)
		}
	}
}

// answered takes the requests that got satisfies off their file, and arms the
// file again for the others.
func (p *pollSet) answered(ev *unix.EpollEvent, got Events, to []*Request[FD, Events]) []*Request[FD, Events] {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[ev.Fd]
	if f == nil || f.generation != ev.Pad {
		return to
	}
	rest := f.waiting[:0]
	once := false
	for _, r := range f.waiting {
		if got&(r.Value.Want|Hangup) == 0 {
			rest = append(rest, r)
			continue
		}
		once = once || r.Value.once
		to = append(to, r)
	}
	clear(f.waiting[len(rest):])
	f.waiting = rest
	switch {
	case len(rest) > 0:
		p.arm(ev.Fd, f)
	case once:
		delete(p.files, ev.Fd)
	}
	return to
}

func toEpoll(e Events) uint32 {
	var bits uint32
	if e&Readable != 0 {
		bits |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if e&Writable != 0 {
		bits |= unix.EPOLLOUT
	}
	return bits
}

func fromEpoll(bits uint32) Events {
	var e Events
	if bits&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0 {
		e |= Readable
	}
	if bits&unix.EPOLLOUT != 0 {
		e |= Writable
	}
	if bits&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		e |= Readable | Writable | Hangup
	}
	return e
}

// epollControl is epoll_ctl without the notice to the Go scheduler that a call
// which never blocks does not need.
func epollControl(epfd, op int, ev *unix.EpollEvent) unix.Errno {
	_, _, err := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), uintptr(op),
		uintptr(ev.Fd), uintptr(unsafe.Pointer(ev)), 0, 0)
	return err
}
