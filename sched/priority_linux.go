package sched

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

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

	mu        sync.Mutex
	computing map[int]bool // thread ids
}

func newPriorities(mode Priorities, log *slog.Logger) *priorities {
	p := &priorities{mode: mode, policy: unix.SCHED_NORMAL, computing: make(map[int]bool)}
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
// SCHED_IDLE, is a person's wish and left alone.
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

// slice sets the time slice of a thread. What the thread forks, and so every
// process it starts, gets the kernel's default.
func (p *priorities) slice(tid int, d time.Duration) error {
	attr := unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: p.policy, Nice: p.nice,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: uint64(d),
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
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil || p.computing[tid] {
			continue
		}
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil && sharing(attr.Policy) && time.Duration(attr.Runtime) != reactSlice {
			_ = p.slice(tid, reactSlice)
		}
	}
}

// thread is the operating system's thread that a task computes on.
type thread struct {
	p    *priorities
	tid  int
	kept bool // until the task ends, since its priority cannot be raised again
}

// compute binds the goroutine to its thread and marks that as computing.
func (th *thread) compute(p *priorities) {
	if th.kept || p.mode == NoPriorities {
		return
	}
	runtime.LockOSThread()
	th.p, th.tid = p, unix.Gettid()
	if p.mode == Nice {
		_ = unix.Setpriority(unix.PRIO_PROCESS, th.tid, 19)
		th.kept = true
		return
	}
	p.mu.Lock()
	p.computing[th.tid] = true
	p.mu.Unlock()
	_ = p.slice(th.tid, computeSlice)
}

// react makes the thread one that reacts again and lets the goroutine go.
func (th *thread) react() {
	if th.p == nil || th.kept {
		return
	}
	th.p.mu.Lock()
	delete(th.p.computing, th.tid)
	th.p.mu.Unlock()
	_ = th.p.slice(th.tid, reactSlice)
	th.p, th.tid = nil, 0
	runtime.UnlockOSThread()
}

// mine reports whether the caller runs on the thread of the task, and so is the
// task. Where tasks have no thread of their own it has to be taken on trust.
func (th *thread) mine() bool { return th.p == nil || th.tid == unix.Gettid() }

// threadCount is the number of threads that the runtime has.
func threadCount() int {
	sample := []metrics.Sample{{Name: "/sched/threads/total:threads"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int(sample[0].Value.Uint64())
}
