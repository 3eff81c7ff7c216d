package sweep

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// binding gives each thread that computes a processor of its own. Left alone, Linux now
// and then wakes a thread on the processor of the one that woke it while another
// stands idle, and moves it only milliseconds later: after several blocks.
type binding struct {
	before unix.CPUSet
	room   chan struct{} // as many places as processors

	mu    sync.Mutex
	taken map[int]bool // processors, by whether a thread computes there
	of    map[int]int  // the processor of each thread that has computed, by thread
}

// newBinding takes the first of the processors that the process may use. It
// returns nil where there is nothing to choose.
func newBinding(count int) *binding {
	b := &binding{room: make(chan struct{}, count), taken: make(map[int]bool), of: make(map[int]int)}
	if unix.SchedGetaffinity(0, &b.before) != nil || b.before.Count() < count || count < 2 {
		return nil
	}
	for cpu := 0; len(b.taken) < count; cpu++ {
		if b.before.IsSet(cpu) {
			b.taken[cpu] = false
		}
	}
	return b
}

// claim waits until a processor is free for the calling task. The Go scheduler
// interrupts a task that has computed for 10 ms; it has to go on before another
// begins, which would need a third thread, beside one of the two on its processor.
func (b *binding) claim() {
	if b != nil {
		b.room <- struct{}{}
	}
}

// release gives the processor of a claim to another task.
func (b *binding) release() {
	if b != nil {
		<-b.room
	}
}

// enter binds the calling thread, which has a claim, to a processor: that of its
// last time if it is free.
func (b *binding) enter() {
	if b == nil {
		return
	}
	thread := unix.Gettid()
	b.mu.Lock()
	defer b.mu.Unlock()
	if cpu, ok := b.of[thread]; ok && !b.taken[cpu] {
		b.taken[cpu] = true
		return
	}
	delete(b.of, thread)
	for cpu, taken := range b.taken {
		if !taken && bindThread(thread, cpu) == nil {
			b.taken[cpu], b.of[thread] = true, cpu
			return
		}
	}
}

// leave lets another thread compute on the processor.
func (b *binding) leave() {
	if b == nil {
		return
	}
	thread := unix.Gettid()
	b.mu.Lock()
	defer b.mu.Unlock()
	if cpu, ok := b.of[thread]; ok {
		b.taken[cpu] = false
	}
}

func bindThread(thread, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(thread, &set)
}

// undo gives all threads their processors back, also those that were started by a
// thread that was bound.
func (b *binding) undo() {
	if b == nil {
		return
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range entries {
		if thread, err := strconv.Atoi(e.Name()); err == nil {
			_ = unix.SchedSetaffinity(thread, &b.before)
		}
	}
}
