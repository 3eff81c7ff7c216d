package process

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// OpenWatch sees which files a command opens. The kernel stops each open(2) of
// the command and of all that it starts until a notice of it is answered
// (seccomp, "user notification"), which takes some 0.1 ms; other commands are
// not touched. So that a command is born with the filter, it is forked by a
// thread that has it, which does nothing else and lives as long as the watch:
// its children are killed when it ends.
type OpenWatch struct {
	sched    *sched.Scheduler
	forks    chan func()
	listener int
	stop     context.CancelFunc

	mu   sync.Mutex // guards seen
	seen *openedFiles
}

// NewOpenWatch fails where the kernel does not permit it. Unless the process
// has CAP_SYS_ADMIN, what is watched gains nothing from set-user-ID programs.
func NewOpenWatch(s *sched.Scheduler) (*OpenWatch, error) {
	w := &OpenWatch{sched: s, forks: make(chan func())}
	ready := make(chan error)
	go w.forkLoop(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.noticeLoop(ctx)
	return w, nil
}

// Close may be called when no command runs that was watched. It does not wait
// for the goroutines: older kernels do not wake one that asks for a notice
// which was just taken back.
func (w *OpenWatch) Close() {
	close(w.forks)
	w.stop()
}

// forkLoop runs functions on a thread with the filter. The thread is never
// given back: it ends with the goroutine that is bound to it.
func (w *OpenWatch) forkLoop(ready chan<- error) {
	runtime.LockOSThread()
	var err error
	w.listener, err = filterOpens()
	ready <- err
	if err != nil {
		return
	}
	for fork := range w.forks {
		fork()
	}
}

// Fork has f start a process that is watched, or one that is not if w is nil.
// It returns when f has.
func (w *OpenWatch) Fork(f func()) {
	if w == nil {
		f()
		return
	}
	done := make(chan struct{})
	w.forks <- func() { defer close(done); f() }
	<-done
}

// Begin notes from now on what is opened, unless a command is watched already:
// notices do not say to which of two commands a process belongs.
func (w *OpenWatch) Begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		return false
	}
	w.seen = &openedFiles{known: map[string]bool{}}
	return true
}

// End returns the paths that were opened, in the order of the first time.
func (w *OpenWatch) End() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := w.seen.paths
	w.seen = nil
	return paths
}

// openedFiles are absolute paths, each once.
type openedFiles struct {
	paths []string
	known map[string]bool
}

const maxOpened = 4096

func (o *openedFiles) add(path string) {
	if path != "" && !o.known[path] && len(o.paths) < maxOpened {
		o.known[path] = true
		o.paths = append(o.paths, path)
	}
}

// records reports whether another path would be remembered.
func (w *OpenWatch) records() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen != nil && len(w.seen.paths) < maxOpened
}

func (w *OpenWatch) record(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		w.seen.add(path)
	}
}

// noticeLoop answers notices until ctx ends.
func (w *OpenWatch) noticeLoop(ctx context.Context) {
	defer unix.Close(w.listener)
	for ctx.Err() == nil && (w.nextSoon() || w.sched.WaitReadable(ctx, w.listener) == nil) {
		var n notice
		if err := control(w.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // the process was killed meanwhile
		}
		if w.records() { // to find the path out takes as long as all else
			w.record(n.path())
		}
		answer := noticeAnswer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = control(w.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
	}
}

// soon is how long, in milliseconds, a notice is waited for after another one: a command that
// opens many files opens the next one meanwhile.
const soon = 1

// nextSoon waits for that, in a system call of its own: to wait by the scheduler costs more.
func (w *OpenWatch) nextSoon() bool {
	fds := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, soon)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

func control(fd int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// filterOpens has the kernel give notice of each open(2) of this thread and of
// the processes that it starts.
func filterOpens() (listener int, err error) {
	if !Unrestricted() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return -1, fmt.Errorf("give up privileges: %w", err)
		}
	}
	filter := openFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fmt.Errorf("watch opened files: %w", errno)
	}
	wakeAtOnce(int(fd))
	return int(fd), nil
}

// wakeAtOnce has the kernel run a process that waits for an answer, and the thread that waits for
// a notice, on the processor of the other: they take turns, and each waits for the other (Linux
// 6.6; a matter of speed only).
func wakeAtOnce(listener int) {
	const syncWakeUp = 1 // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, syncWakeUp)
}

// Unrestricted reports whether this process may filter without giving up
// anything.
func Unrestricted() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// openFilter is the program that chooses the system calls. Those of another
// architecture (a 32-bit program) pass.
func openFilter() []unix.SockFilter {
	const numberAt, architectureAt = 0, 4 // in struct seccomp_data
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(value uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: then, Jf: otherwise, K: value}
	}
	end := func(with uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
	}
	calls := openCalls()
	filter := []unix.SockFilter{load(architectureAt), equal(architecture, 0, uint8(len(calls)+1)), load(numberAt)}
	for i, number := range calls {
		filter = append(filter, equal(number, uint8(len(calls)-i), 0))
	}
	return append(filter, end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_USER_NOTIF))
}
