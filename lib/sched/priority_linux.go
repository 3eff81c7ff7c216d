package sched

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel picks, of the threads that have not had more than their share, the
// one with the earliest deadline, and a deadline is a slice away (EEVDF). So
// threads that react get the shortest slice there is, and threads that compute
// the longest: with the kernel's default of a few milliseconds, one that is near
// its deadline would keep the processor from one in a hundred that wake up, and
// until the next tick of the clock.
const (
	reactSlice   = 100 * time.Microsecond
	computeSlice = 100 * time.Millisecond
)

// priorities sets the scheduling attributes of the process's threads.
type priorities struct {
	mode   Priorities
	policy uint32 // of the process
	nice   int32  // of the process
}

// process is what the schedulers of the process want of its threads together.
var process = struct {
	sync.Mutex
	reacting  map[*priorities]bool
	computing map[int]bool // thread ids
}{reacting: make(map[*priorities]bool), computing: make(map[int]bool)}

func newPriorities(mode Priorities, log *slog.Logger) *priorities {
	p := &priorities{mode: mode, policy: unix.SCHED_NORMAL}
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		p.policy, p.nice = attr.Policy, attr.Nice
	}
	if mode != PrioritiesAuto && mode != Slices {
		return p
	}
	if err := p.trySlices(); err != nil {
		saidNoSlices.Do(func() { log.Info("sched: no short time slices here; reactions may take longer", "error", err) })
		p.mode = NoPriorities
		return p
	}
	p.mode = Slices
	return p
}

var saidNoSlices sync.Once

// trySlices gives the calling thread a short slice and sees whether that has an
// effect, which it hasn't before Linux 6.12. A policy that has no slices, such as
// SCHED_IDLE, is a person's choice and left alone.
func (p *priorities) trySlices() error {
	if !sharing(p.policy) {
		return fmt.Errorf("scheduling policy %d: %w", p.policy, ErrUnsupported)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.slice(0, reactSlice); err != nil {
		return err
	}
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("sched_getattr: %w", err)
	}
	if time.Duration(attr.Runtime) != reactSlice {
		return ErrUnsupported
	}
	return nil
}

// sharing reports whether threads of a policy share processors by time slices.
func sharing(policy uint32) bool {
	return policy == unix.SCHED_NORMAL || policy == unix.SCHED_BATCH
}

// slice sets the time slice of a thread, 0 for the kernel's default. What the thread forks, and so every
// process it starts, gets the kernel's default.
func (p *priorities) slice(tid int, d time.Duration) error {
	attr := unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: p.policy, Nice: p.nice,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: uint64(d),
	}
	if d == 0 { // without privilege the flag can't be taken back
		plain := attr
		plain.Flags = 0
		if unix.SchedSetAttr(tid, &plain, 0) == nil {
			return nil
		}
	}
	if err := unix.SchedSetAttr(tid, &attr, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}

// react gives all threads that don't compute a short slice. The runtime starts
// threads as it likes, so this is repeated while tasks compute.
func (p *priorities) react() {
	if p.mode != Slices {
		return
	}
	process.Lock()
	defer process.Unlock()
	process.reacting[p] = true
	for tid, attr := range ownThreads() {
		if !process.computing[tid] && time.Duration(attr.Runtime) != reactSlice {
			_ = p.slice(tid, reactSlice)
		}
	}
}

// rest ends react: if nobody else in the process wants short slices, threads have
// the kernel's own again.
func (p *priorities) rest() {
	if p == nil || p.mode != Slices {
		return
	}
	process.Lock()
	defer process.Unlock()
	if delete(process.reacting, p); len(process.reacting) > 0 {
		return
	}
	for tid, attr := range ownThreads() {
		if d := time.Duration(attr.Runtime); d == reactSlice || d == computeSlice {
			_ = p.slice(tid, 0)
		}
	}
}

// ownThreads yields the threads of the process that share processors by slices.
func ownThreads() map[int]*unix.SchedAttr {
	threads := make(map[int]*unix.SchedAttr)
	entries, _ := os.ReadDir("/proc/self/task") // without /proc there are none to tend
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil && sharing(attr.Policy) {
			threads[tid] = attr
		}
	}
	return threads
}

// threads reports whether each task computes on a thread of its own.
func (p *priorities) threads() bool { return p.mode != NoPriorities }

// thread is the operating system's thread that a task computes on.
type thread struct {
	p    *priorities
	tid  atomic.Int32 // 0 while there is none
	kept bool         // until the task ends, since its priority cannot be raised again

	cpu time.Duration // what the thread had had when the turn began

	mu     sync.Mutex // held while the slice of the thread is changed
	marked atomic.Bool
}

// compute binds the goroutine to its thread. The turn is marked as computing if it is expected to
// be long.
func (th *thread) compute(p *priorities, long bool) {
	if !p.threads() {
		return
	}
	if th.kept {
		th.cpu = processorTime()
		return
	}
	runtime.LockOSThread()
	tid := unix.Gettid()
	th.p = p
	th.tid.Store(int32(tid))
	th.cpu = processorTime()
	if p.mode == Nice {
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, 19)
		th.kept = true
	} else if long {
		th.mark()
	}
}

// mark gives the thread the slice of one that computes, for the rest of the turn. Who tends the
// scheduler calls it too.
func (th *thread) mark() {
	if th.marked.Load() {
		return
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	tid := int(th.tid.Load())
	if tid == 0 || th.p.mode != Slices || th.marked.Load() {
		return
	}
	th.marked.Store(true)
	process.Lock()
	process.computing[tid] = true
	process.Unlock()
	_ = th.p.slice(tid, computeSlice)
}

// react makes the thread one that reacts again and lets the goroutine go.
func (th *thread) react() {
	if th.p == nil || th.kept {
		return
	}
	th.mu.Lock()
	tid := int(th.tid.Swap(0))
	if th.marked.Swap(false) {
		process.Lock()
		delete(process.computing, tid)
		process.Unlock()
		_ = th.p.slice(tid, reactSlice)
	}
	th.mu.Unlock()
	th.p = nil
	runtime.UnlockOSThread()
}

// spent is what a turn that took so long counts for: its processor time, and up to Grace of the
// rest. What the thread waited for a processor that other programs had is not the
// task's fault, though the kernel does not tell it apart from what the task blocked
// for: the Go runtime parks a thread that it preempts, also one that had to wait.
func (th *thread) spent(took time.Duration) time.Duration {
	if th.p == nil || took <= Grace {
		return allOfIt
	}
	return processorTime() - th.cpu + Grace
}

// processorTime is what the calling thread has had of processors.
func processorTime() time.Duration {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// leave says that the task has ended.
func (th *thread) leave() { th.tid.Store(0) }

// mine reports whether the caller runs on the thread of the task, and so is the
// task, which has a slot.
func (th *thread) mine() bool { return int(th.tid.Load()) == unix.Gettid() }

// account reads what the kernel says of the thread, if the task has one. Without
// schedstat, delays count as the task's own.
func (th *thread) account() (a account, ok bool) {
	tid := th.tid.Load()
	if tid == 0 {
		return a, false
	}
	var ts unix.Timespec
	clock := int(^tid<<3 | 6) // of one thread (4), what the scheduler counts (2)
	if err := unix.ClockGettime(int32(clock), &ts); err != nil {
		return a, false
	}
	a.used = time.Duration(ts.Nano())
	folder := "/proc/self/task/" + strconv.Itoa(int(tid))
	if fields := strings.Fields(contents(folder + "/schedstat")); len(fields) > 1 {
		delayed, _ := strconv.ParseInt(fields[1], 10, 64)
		a.delayed = time.Duration(delayed)
	}
	_, after, _ := strings.Cut(contents(folder+"/stat"), ") ")
	a.asleep = strings.HasPrefix(after, "S") || strings.HasPrefix(after, "D")
	return a, true
}

// threadCount is the number of threads that the runtime has.
func threadCount() int {
	sample := []metrics.Sample{{Name: "/sched/threads/total:threads"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int(sample[0].Value.Uint64())
}

func contents(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}
