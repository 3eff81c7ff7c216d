package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// The environment of each process of an attempt names the attempt and its pilot.
const (
	AttemptVariable = "FAIRWAY_ATTEMPT" // number of the attempt
	PilotVariable   = "FAIRWAY_PILOT"   // ID of the pilot
)

// maxSweeps bounds how often processes that a job left behind are killed and
// looked for again: each time their children come to light.
const maxSweeps = 1000

// Tree knows the processes of all attempts. The pilot is the reaper of what
// they leave behind: a process whose parent ends becomes a child of the pilot,
// wherever it has hidden itself, so no process of an attempt gets lost.
type Tree struct {
	sched     *sched.Scheduler
	children  *os.File // lists the pilot's children
	restraint restraint
	session   int // of the pilot, and of what it starts for itself
	stop      context.CancelFunc
	reaping   sync.WaitGroup

	mu      sync.Mutex // guards what follows, and starting a process with noting it
	leads   map[int]leader
	strays  map[int]*stray
	workers map[int]bool // which fork leads
}

type leader struct {
	attempt uint64
	folder  string // where it works
}

type stray struct {
	suspects map[uint64]bool // attempts that it may belong to
	awaited  bool            // finish reaps it
}

// NewTree makes this process the reaper of what its descendants leave behind.
func NewTree(s *sched.Scheduler) (*Tree, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of what jobs leave behind: %w", err)
	}
	t := &Tree{sched: s, restraint: os.Geteuid() == 0, leads: map[int]leader{}, strays: map[int]*stray{}}
	t.workers = map[int]bool{}
	// Orphans are given to the first thread of the process. Without this file
	// the whole of /proc is searched.
	t.children, _ = os.Open(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	t.session, _ = unix.Getsid(0)
	var ctx context.Context
	ctx, t.stop = context.WithCancel(context.Background())
	ends := s.Signals(syscall.SIGCHLD)
	t.reaping.Go(func() { defer ends.Close(); t.reapStrays(ctx, ends) })
	return t, nil
}

// ReapTime is for how long at most a process that has lost its parent, and has ended, stays a
// zombie while its attempt runs: many ends cost one look.
const ReapTime = 50 * time.Millisecond

// reapStrays reaps what ends beside the leads, as init does: a job may wait for the end of a process
// by its number.
func (t *Tree) reapStrays(ctx context.Context, ends *sched.Signals) {
	for {
		if _, err := ends.Wait(ctx); err != nil || t.sched.Sleep(ctx, ReapTime) != nil {
			return
		}
		t.mu.Lock()
		t.notice()
		for pid, s := range t.strays {
			if s.awaited {
				continue
			}
			if reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); reaped == pid || errors.Is(err, unix.ECHILD) {
				delete(t.strays, pid)
			}
		}
		t.mu.Unlock()
	}
}

// Close ends what attempts have left, also where it was not known to which of them
// it belongs.
func (t *Tree) Close() {
	t.stop()
	t.reaping.Wait()
	for range maxSweeps {
		t.mu.Lock()
		t.notice()
		left := slices.Collect(maps.Keys(t.strays))
		for _, s := range t.strays {
			s.awaited = true
		}
		t.mu.Unlock()
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			t.finish(pid, endedContext)
		}
	}
	if t.children != nil {
		_ = t.children.Close()
	}
}

// Lead is the first process of an attempt.
type Lead struct{ pid, pidfd int }

// Start starts the process that leads an attempt. It is killed by the kernel
// when the thread that starts it ends; no thread of a pilot ends before the
// pilot, because no goroutine of it ends while bound to a thread.
//
// Each attempt is a session of its own, as the kernel shares processors among
// sessions first (sched_autogroup): a pilot that wakes up to report then has
// its own share to draw on, however much its attempts compute.
func (t *Tree) Start(attempt uint64, path string, argv []string, attr *syscall.ProcAttr) (Lead, error) {
	l := Lead{pidfd: -1}
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	attr.Sys.Setsid, attr.Sys.Pdeathsig, attr.Sys.PidFD = true, syscall.SIGKILL, &l.pidfd
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	if l.pid, err = t.forkExec(path, argv, attr); err != nil {
		return Lead{}, err
	}
	t.leads[l.pid] = leader{attempt, attr.Dir}
	return l, nil
}

func (t *Tree) forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t.restraint.apply()
	return syscall.ForkExec(path, argv, attr)
}

// Reap waits for the end of the lead.
func (t *Tree) Reap(ctx context.Context, l Lead) (sched.Exit, error) {
	exit, err := t.sched.WaitPid(ctx, l.pid, l.pidfd)
	if (err == nil || ctx.Err() == nil) && l.pidfd >= 0 {
		_ = unix.Close(l.pidfd)
	}
	return exit, err
}

// Clear kills what an attempt has left behind after its lead was reaped.
func (t *Tree) Clear(attempt uint64) error { return t.clear(attempt, endedContext) }

// clear is Clear where a SIGTERM was sent before; grace is how long it may go on after that.
func (t *Tree) clear(attempt uint64, grace context.Context) error {
	for range maxSweeps {
		left := t.straysOf(attempt, true)
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			t.finish(pid, grace)
		}
	}
	return errors.New("processes of the job keep starting others and could not all be ended")
}

// finish reaps a stray when grace is over at the latest.
func (t *Tree) finish(pid int, grace context.Context) {
	if _, err := t.sched.WaitPid(grace, pid, -1); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = t.sched.WaitPid(context.Background(), pid, -1)
	}
	t.mu.Lock()
	delete(t.strays, pid)
	t.mu.Unlock()
}

// Forget is for an attempt that has no processes any more: a stray that may
// have been of this or of another one is not of this one. It reports whether no stray is left.
func (t *Tree) Forget(attempt uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.leads, func(_ int, l leader) bool { return l.attempt == attempt })
	for _, s := range t.strays {
		delete(s.suspects, attempt)
	}
	return len(t.strays) == 0
}

// straysOf returns the children that can belong to no other running attempt
// than this one. Who clears them reaps them.
func (t *Tree) straysOf(attempt uint64, clears bool) (pids []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notice()
	for pid, s := range t.strays {
		if len(s.suspects) == 0 || len(s.suspects) == 1 && s.suspects[attempt] {
			pids = append(pids, pid)
			s.awaited = s.awaited || clears
		}
	}
	return pids
}

// notice takes note of children that the pilot did not start. The caller holds
// the mutex, so that no process is just being started.
func (t *Tree) notice() {
	for pid := range t.list {
		if _, ok := t.leads[pid]; ok || t.strays[pid] != nil || t.workers[pid] {
			continue
		}
		if session, err := unix.Getsid(pid); err != nil || session == t.session {
			continue // the pilot waits for it itself: each attempt is another session
		}
		if reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil || reaped == pid || t.waitsForAdoption(pid) {
			continue
		}
		t.strays[pid] = t.suspect(pid)
	}
}

// suspect finds out to which attempts a process may belong. Its session proves
// that, as long as it has not made one of its own. Its process group, the mark in
// its environment and its working folder say so; a process may have set the latter
// two itself, so what they say counts if it can be true. Else any attempt that runs
// may have started it.
func (t *Tree) suspect(pid int) *stray {
	session, _ := unix.Getsid(pid)
	group, _ := unix.Getpgid(pid)
	for _, lead := range []int{session, group} {
		if l, ok := t.leads[lead]; ok {
			return suspected(l.attempt)
		}
	}
	mark, _ := markOf(pid, AttemptVariable)
	works, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	var all, there []uint64
	for _, l := range t.leads {
		if mark == strconv.FormatUint(l.attempt, 10) {
			return suspected(l.attempt)
		}
		if works == l.folder || strings.HasPrefix(works, l.folder+"/") {
			there = append(there, l.attempt)
		}
		all = append(all, l.attempt)
	}
	if len(there) > 0 {
		return suspected(there...)
	}
	return suspected(all...)
}

func suspected(attempts ...uint64) *stray {
	s := &stray{suspects: map[uint64]bool{}}
	for _, id := range attempts {
		s.suspects[id] = true
	}
	return s
}

func (t *Tree) list(yield func(pid int) bool) {
	if t.children == nil {
		t.search(yield)
		return
	}
	buffer := make([]byte, 0, 512)
	for {
		n, err := t.children.ReadAt(buffer[:cap(buffer)], 0)
		if n < cap(buffer) || err != nil {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 0, 2*cap(buffer))
	}
	for field := range bytes.FieldsSeq(buffer) {
		if pid, err := strconv.Atoi(string(field)); err == nil && !yield(pid) {
			return
		}
	}
}

func (t *Tree) search(yield func(pid int) bool) {
	for pid, parent := range parents() {
		if parent == os.Getpid() && !yield(pid) {
			return
		}
	}
}

// signal sends a signal to all processes of an attempt whose lead runs.
func (t *Tree) signal(attempt uint64, l Lead, signal unix.Signal) {
	roots := append(t.straysOf(attempt, false), l.pid)
	for _, pid := range descendants(roots) {
		_ = unix.Kill(pid, signal)
	}
	_ = unix.Kill(-l.pid, signal)
}

// End ends an attempt whose lead runs: SIGTERM, and SIGKILL when grace is over.
func (t *Tree) End(attempt uint64, l Lead, grace time.Duration) (sched.Exit, error) {
	t.signal(attempt, l, unix.SIGTERM)
	t.signal(attempt, l, unix.SIGCONT)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	exit, err := t.Reap(ctx, l)
	if err != nil {
		t.signal(attempt, l, unix.SIGKILL)
		exit, err = t.Reap(context.Background(), l)
	}
	return exit, errors.Join(err, t.clear(attempt, ctx))
}

// restraint takes from commands that run as root the right to write where the
// permissions of a file forbid it. Inputs are links to files that others read
// too, and what Fairway has made is read-only; without this a command of root
// could overwrite it all the same. Reading is left as it is.
type restraint bool

// apply has it hold for what the calling thread executes from now on (the
// thread itself keeps the right), for which the caller is bound to the thread.
// Where the kernel refuses, what a command wrote to its input is still noticed
// at its end.
func (r restraint) apply() {
	if r {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_OVERRIDE, 0, 0, 0)
	}
}
