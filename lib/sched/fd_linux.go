package sched

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollBatch bounds the events taken from the kernel by one call.
const epollBatch = 128

// pollSet is one epoll with all descriptors that are waited for. Every
// registration is one-shot: it fires once and is armed again by the next wait,
// so nothing is reported that nobody asked for.
//
// The epoll is itself a descriptor in the runtime's poller, which holds no
// thread and no P for it. While tasks compute, spare Ps see to it that the
// runtime always has a thread in its poller.
type pollSet struct {
	epfd, wakefd int
	file         *os.File // around epfd
	raw          syscall.RawConn
	deadline     time.Time // of reads from file; for block only
	calls        atomic.Uint64

	mu          sync.Mutex
	files       map[int32]*pollFile
	generations int32 // of armings so far
}

// pollFile is what is known of one descriptor number. An event bears the
// generation of the arming it comes from; those of earlier armings, or of an
// earlier file with the same number, are stale and dropped. (A registration of a
// file that was closed lasts as long as a duplicate of its descriptor, and can't be
// removed any more.) That loses nothing, since arming again reports a state that
// still holds.
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
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open puts the wake-up into the epoll.
func (p *pollSet) open() error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.wakefd)}
	if err := p.control(unix.EPOLL_CTL_ADD, &ev); err != 0 {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	if err := unix.SetNonblock(p.epfd, true); err != nil {
		return fmt.Errorf("set epoll nonblocking: %w", err)
	}
	return nil
}

// share puts the epoll into the runtime's poller, before the first block. If it were there
// without, each event would wake a thread of the runtime for nothing.
func (p *pollSet) share() {
	if p.file != nil {
		return
	}
	p.file = os.NewFile(uintptr(p.epfd), "epoll")
	p.raw, _ = p.file.SyscallConn() // fails for a nil file only
}

func (p *pollSet) close() {
	unix.Close(p.wakefd)
	if p.file != nil {
		p.file.Close()
		return
	}
	unix.Close(p.epfd)
}

func (p *pollSet) kind() Kind[FD, Events] {
	return Kind[FD, Events]{
		Name: "fd", Poll: p.poll, Group: p.group,
		Block: p.block, Unblock: p.unblock, Concurrent: true, Syscalls: p.calls.Load,
	}
}

func (p *pollSet) group(r *Request[FD, Events], joined bool) {
	var refused refusal
	p.mu.Lock()
	fd := int32(r.Value.Num)
	f := p.files[fd]
	if joined {
		if f == nil {
			f = &pollFile{}
			p.files[fd] = f
		}
		f.waiting = append(f.waiting, r)
		refused = p.arm(fd, f)
	} else {
		p.leave(fd, f, r)
	}
	p.mu.Unlock()
	refused.end()
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
	_ = p.control(unix.EPOLL_CTL_DEL, &unix.EpollEvent{Fd: fd})
	delete(p.files, fd)
}

// arm registers what all waiters of a descriptor want together. If epoll does not
// take the descriptor, the caller is to end their waits, without the lock.
func (p *pollSet) arm(fd int32, f *pollFile) refusal {
	p.generations++
	f.generation = p.generations
	ev := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: fd, Pad: f.generation}
	for _, r := range f.waiting {
		ev.Events |= toEpoll(r.Value.Want)
	}
	err := p.register(f, &ev)
	if err == nil {
		return refusal{}
	}
	delete(p.files, fd)
	return refusal{f.waiting, err}
}

// register tells the kernel, which knows better than pollFile whether the number
// still means the same file.
func (p *pollSet) register(f *pollFile, ev *unix.EpollEvent) error {
	first, second, retry := unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_MOD, unix.EEXIST
	if f.known {
		first, second, retry = second, first, unix.ENOENT
	}
	f.known = true
	err := p.control(first, ev)
	if err == retry {
		err = p.control(second, ev)
	}
	if err != 0 {
		return err
	}
	return nil
}

// refusal is the requests for a descriptor that epoll does not take.
type refusal struct {
	waiting []*Request[FD, Events]
	err     error
}

// end ends the requests. Files that are always ready are among those refused.
func (f refusal) end() {
	for _, r := range f.waiting {
		if errors.Is(f.err, unix.EPERM) {
			r.Done(r.Value.Want, nil)
			continue
		}
		r.Done(0, fmt.Errorf("wait for descriptor %d: %w", r.Value.Num, f.err))
	}
}

func (p *pollSet) poll([]*Request[FD, Events]) {
	var events [epollBatch]unix.EpollEvent
	p.handle(p.ready(&events), false)
}

// ready takes events that are there.
func (p *pollSet) ready(events *[epollBatch]unix.EpollEvent) []unix.EpollEvent {
	p.calls.Add(1)
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epfd), uintptr(unsafe.Pointer(&events[0])),
		epollBatch, 0, 0, 0)
	if err != 0 {
		return nil
	}
	return events[:n]
}

func (p *pollSet) block(limit time.Duration) {
	var store [epollBatch]unix.EpollEvent
	var events []unix.EpollEvent
	p.share()
	p.setDeadline(limit)
	p.calls.Add(1) // the runtime's, to see that the epoll is ready
	err := p.raw.Read(func(uintptr) bool {
		events = p.ready(&store)
		return len(events) > 0
	})
	if err != nil {
		p.deadline = time.Time{}
		_ = p.file.SetReadDeadline(p.deadline)
	}
	for i := range events {
		if events[i].Fd == int32(p.wakefd) {
			var b [8]byte
			_, _ = unix.Read(p.wakefd, b[:])
		}
	}
	p.handle(events, true)
}

// setDeadline lets the next block last for about limit. One that is set stays,
// though it may let a block return for nothing, since setting costs more.
func (p *pollSet) setDeadline(limit time.Duration) {
	if limit > 0 && p.deadline.IsZero() {
		p.deadline = time.Now().Add(limit)
		_ = p.file.SetReadDeadline(p.deadline)
	}
}

func (p *pollSet) unblock() {
	_, _ = unix.Write(p.wakefd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// handle ends the requests that events answer. Done is called without the lock,
// since it may come back to group.
func (p *pollSet) handle(events []unix.EpollEvent, byBlock bool) {
	var store [epollBatch]*Request[FD, Events]
	for i := range events {
		got := fromEpoll(events[i].Events)
		answered, refused := p.answered(&events[i], got, store[:0])
		for _, r := range answered {
			r.done(got&(r.Value.Want|Hangup), nil, byBlock)
		}
		refused.end()
	}
}

// answered takes the requests that got satisfies off their file, and arms the
// file again for the others.
func (p *pollSet) answered(
	ev *unix.EpollEvent, got Events, to []*Request[FD, Events],
) (answered []*Request[FD, Events], refused refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[ev.Fd]
	if f == nil || f.generation != ev.Pad {
		return to, refusal{}
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
		refused = p.arm(ev.Fd, f)
	case once:
		delete(p.files, ev.Fd)
	}
	return to, refused
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

// control is epoll_ctl without the notice to the Go scheduler that a call which
// never blocks does not need.
func (p *pollSet) control(op int, ev *unix.EpollEvent) unix.Errno {
	p.calls.Add(1)
	_, _, err := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epfd), uintptr(op),
		uintptr(ev.Fd), uintptr(unsafe.Pointer(ev)), 0, 0)
	return err
}
