package sched

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/seed"
)

// prefer makes a source of the Adaptive strategy want to poll or to block.
// source.calls is held.
func prefer(src *source, polling bool) {
	src.adapt = adaptation{}
	if polling {
		src.adapt = adaptation{events: learned, last: time.Now(), between: time.Microsecond, free: 1}
	}
}

// inVirtualTime makes a scheduler for a test in a synctest bubble. Its naps are timers,
// since a bubble knows nothing of the kernel's.
func inVirtualTime(c Config) *Scheduler {
	s := New(c)
	s.poller.newNapper = func() (*napper, error) { return nil, ErrUnsupported }
	return s
}

// A waiter that blocks for its group and has its event leaves the others to somebody,
// also when they have become cheaper to poll for in that moment.
func TestEventsAreFoundWhenTheLeaderLeavesAsPollingGetsCheaper(t *testing.T) {
	for round := range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := inVirtualTime(Config{})
			defer s.Close()
			d := newDevice(t, func(int) int { return 0 })
			kind := d.kind(Adaptive, round%2 == 0)
			kind.Reaction = time.Millisecond
			h := Register(s, kind)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			var waits sync.WaitGroup
			wait := func(n int) {
				waits.Go(func() {
					if _, err := h.Wait(ctx, n); err != nil {
						t.Errorf("event %d: %v", n, err)
					}
				})
				synctest.Wait()
			}
			for n := range 4 {
				wait(n)
			}
			h.src.calls.Lock()
			prefer(h.src, true)
			h.src.calls.Unlock()
			for n := range 4 {
				d.happen(n)
				<-time.After(20 * time.Millisecond)
			}
			waits.Wait()
		})
		if t.Failed() {
			return
		}
	}
}

// A request may be ended from anywhere. Its waiter returns at once, also while it blocks
// for requests of others that have not ended.
func TestLeaderReturnsWhenItsRequestIsEndedFromElsewhere(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := inVirtualTime(Config{})
			defer s.Close()
			d := newDevice(t, func(int) int { return 0 })
			kind := d.kind(BlockOnly, concurrent)
			requests := make(map[int]*Request[int, int])
			kind.Group = func(r *Request[int, int], joined bool) {
				d.regroup(r, joined)
				requests[r.Value] = r
			}
			h := Register(s, kind)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ended := make(chan error, 2)
			for n := range 2 {
				go func() { _, err := h.Wait(ctx, n); ended <- err }()
				synctest.Wait()
			}
			requests[0].Done(0, nil)
			if err := <-ended; err != nil {
				t.Errorf("concurrent %v: the leader: %v", concurrent, err)
			}
			d.happen(1)
			if err := <-ended; err != nil {
				t.Errorf("concurrent %v: the other: %v", concurrent, err)
			}
		})
	}
}

// TestEventsAreFoundInTimeInEveryInterleaving lets a seed choose, at each step that a
// source takes, what happens in that moment: an event, the end of a context, a request
// ended from elsewhere, another preference between polling and blocking, a processor
// given to somebody else. Time is virtual, so an event that nobody looks for is found
// late even if a later one wakes somebody.
func TestEventsAreFoundInTimeInEveryInterleaving(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	random := seed.Source(t)
	for range rounds {
		runSeed := random.Uint64()
		synctest.Test(t, func(t *testing.T) { newInterleaving(t, runSeed).run() })
		if t.Failed() {
			t.Fatalf("round of seed %d", runSeed)
		}
	}
}

// interleaving is a device whose callbacks are the moments at which things happen.
type interleaving struct {
	*device
	t     *testing.T
	s     *Scheduler
	h     *Handle[int, int]
	text  string
	limit time.Duration // within which an event is to be found

	mu      sync.Mutex
	random  *rand.Rand
	pending []int // awaited, and have not happened
	due     map[int]time.Time
	cancels map[int]context.CancelFunc
}

func newInterleaving(t *testing.T, runSeed uint64) *interleaving {
	random := rand.New(rand.NewPCG(runSeed, 1))
	i := &interleaving{t: t, random: random, due: make(map[int]time.Time), cancels: make(map[int]context.CancelFunc)}
	i.device = newDevice(t, i.number)
	i.tell = random.IntN(2) == 0
	config := Config{Slots: 1 + random.IntN(2), Spare: 2, Threads: 1 + random.IntN(3)}
	i.s = inVirtualTime(config)
	strategy, concurrent := Strategy(random.IntN(3)), random.IntN(2) == 0
	kind := i.kind(strategy, concurrent)
	kind.Interval = time.Duration(1+random.IntN(10)) * 100 * time.Microsecond
	i.limit = kind.Interval * 9 / 8
	if random.IntN(3) > 0 {
		kind.Reaction = kind.Interval * time.Duration(1+random.IntN(3))
		i.limit = kind.Reaction
	}
	if random.IntN(2) == 0 {
		kind.Arm = i.moment(kind.Arm)
	} else { // then Block itself returns for what came before
		kind.Arm = nil
		kind.Block = i.blockUnarmed
	}
	poll, group, block := kind.Poll, kind.Group, kind.Block
	kind.Poll = func(waiting []*deviceRequest) { i.act(true); poll(waiting); i.act(true) }
	kind.Group = func(r *deviceRequest, joined bool) { i.act(true); group(r, joined); i.act(true) }
	kind.Block = func(limit time.Duration) { i.act(false); block(limit); i.act(false) }
	i.h = Register(i.s, kind)
	i.text = fmt.Sprintf("%+v strategy %d concurrent %v arm %v tell %v interval %v reaction %v",
		config, strategy, concurrent, kind.Arm != nil, i.tell, kind.Interval, kind.Reaction)
	return i
}

// blockUnarmed is a Block that returns at once if an event is there.
func (i *interleaving) blockUnarmed(limit time.Duration) {
	i.device.mu.Lock()
	i.armed = true
	there := len(i.ready) > 0
	i.device.mu.Unlock()
	if !there {
		i.block(limit)
	}
}

func (i *interleaving) moment(arm func() bool) func() bool {
	return func() bool {
		i.act(true)
		defer i.act(true)
		return arm()
	}
}

func (i *interleaving) number(n int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.random.IntN(n)
}

// act lets something happen now. held says that source.calls is held.
func (i *interleaving) act(held bool) {
	for range i.number(3) {
		switch i.number(8) {
		case 0, 1:
			i.happenSome()
		case 2:
			i.cancelSome()
		case 3:
			if held {
				prefer(i.h.src, i.number(2) == 0)
			}
		case 4:
			runtime.Gosched()
		case 5:
			i.unblock() // for nothing
		case 6:
			i.endSome()
		case 7:
			go i.endSome()
		}
	}
}

func (i *interleaving) happenSome() {
	i.mu.Lock()
	if len(i.pending) == 0 {
		i.mu.Unlock()
		return
	}
	at := i.random.IntN(len(i.pending))
	n := i.pending[at]
	i.pending = slices.Delete(i.pending, at, at+1)
	i.due[n] = time.Now()
	i.mu.Unlock()
	i.happen(n)
}

// endSome ends a request without the device's doing.
func (i *interleaving) endSome() {
	i.device.mu.Lock()
	var some *deviceRequest
	for r := range i.group {
		some = r
		break
	}
	i.device.mu.Unlock()
	if some == nil {
		return
	}
	i.mu.Lock()
	if at := slices.Index(i.pending, some.Value); at >= 0 {
		i.pending = slices.Delete(i.pending, at, at+1)
		i.due[some.Value] = time.Now()
	}
	i.mu.Unlock()
	if !some.Done(some.Value, nil) { // it was being cancelled
		i.happen(some.Value)
	}
}

func (i *interleaving) cancelSome() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, cancel := range i.cancels {
		cancel()
		return
	}
}

func (i *interleaving) run() {
	defer i.s.Close()
	if i.number(2) == 0 {
		defer computeVirtually(i.s, 3)()
	}
	var waiters sync.WaitGroup
	for w := range 5 {
		waiters.Go(func() {
			for k := range 8 {
				i.waitFor(8*w + k)
				if pause := time.Duration(i.number(3)) * 100 * time.Microsecond; pause > 0 {
					<-time.After(pause)
				}
			}
		})
	}
	waiters.Wait()
	if len(i.group) != 0 || i.h.src.members.Load() != 0 {
		i.t.Errorf("%s: %d requests left in the group", i.text, len(i.group))
	}
}

// waitFor waits for event n, again after each cancellation, and sees when it is found.
func (i *interleaving) waitFor(n int) {
	i.mu.Lock()
	i.pending = append(i.pending, n)
	later := time.Duration(i.random.IntN(4)) * 300 * time.Microsecond
	i.mu.Unlock()
	// No timer of 0: in a bubble, goroutines that make one at the same time crash the race
	// detector (golang/go issue 78156).
	if later > 0 {
		time.AfterFunc(later, func() { i.makeHappen(n) })
	} else {
		go i.makeHappen(n)
	}
	for {
		ctx, cancel := context.WithTimeout(i.t.Context(), time.Second)
		i.mu.Lock()
		i.cancels[n] = cancel
		i.mu.Unlock()
		asked := time.Now()
		_, err := i.h.Wait(ctx, n)
		late := time.Since(asked)
		i.mu.Lock()
		delete(i.cancels, n)
		if at := i.due[n]; at.After(asked) {
			late = time.Since(at)
		}
		i.mu.Unlock()
		cancel()
		if err == nil {
			i.forget(n)
		}
		switch {
		case err == nil && late > i.limit:
			i.t.Errorf("%s: event %d was found %v late", i.text, n, late)
			return
		case err == nil:
			return
		case !errors.Is(err, context.Canceled):
			i.t.Errorf("%s: event %d: %v", i.text, n, err)
			return
		}
	}
}

// makeHappen sees to it that n happens, if it has not.
func (i *interleaving) makeHappen(n int) {
	i.mu.Lock()
	at := slices.Index(i.pending, n)
	if at >= 0 {
		i.pending = slices.Delete(i.pending, at, at+1)
		i.due[n] = time.Now()
	}
	i.mu.Unlock()
	if at >= 0 {
		i.happen(n)
	}
}

// computeVirtually keeps slots busy with tasks that take virtual time, until the function
// that it returns is called.
func computeVirtually(s *Scheduler, n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var tasks []*Task
	for range n {
		tasks = append(tasks, s.Go(ctx, func(t *Task) error {
			for ctx.Err() == nil {
				<-time.After(20 * time.Microsecond)
				t.Checkpoint()
			}
			return nil
		}))
	}
	return func() {
		cancel()
		for _, t := range tasks {
			<-t.Done()
		}
	}
}
