package sweep

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBoundGivesTheSameBitsAndAllProcessorsBack(t *testing.T) {
	var before unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &before))
	const n, iterations = 60, 20
	p := Program{Cut: newCut(n, 2, 2, 2, 4), Last: 2, Iterations: iterations, Bound: true}
	must(t, errors.Join(p.Build(), p.Insert(context.Background()), p.Run(context.Background())))
	got := make([]float64, n*n)
	Boundary(n, got)
	must(t, p.Result(context.Background(), got))
	if !sameBits(got, Sequential(n, iterations)) {
		t.Error("other bits than the sequential sweep")
	}
	threads, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, e := range threads {
		thread, err := strconv.Atoi(e.Name())
		must(t, err)
		var after unix.CPUSet
		if err := unix.SchedGetaffinity(thread, &after); err == nil && after != before {
			t.Errorf("thread %d is left with %d processors of %d", thread, after.Count(), before.Count())
		}
	}
}

// Two threads that compute at once have a processor each, and a thread that comes back
// has its own again.
func TestBindingOfThreads(t *testing.T) {
	b := newBinding(2)
	if b == nil {
		t.Skip("one processor")
	}
	defer b.undo()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.enter()
	own := b.of[unix.Gettid()]
	other := make(chan int)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		b.enter()
		defer b.leave()
		other <- b.of[unix.Gettid()]
	}()
	if got := <-other; got == own {
		t.Errorf("two threads compute on processor %d", got)
	}
	b.leave()
	b.enter()
	if got := b.of[unix.Gettid()]; got != own {
		t.Errorf("a thread came back to processor %d and not %d", got, own)
	}
}
