package process

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// WatchInterval is how often the watchdog checks running attempts of which something may change:
// their time, and their memory where no cgroup limits it. Limits may be passed for that long.
const WatchInterval = 100 * time.Millisecond

// endedContext has ended: it allows no grace.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Watched is a command that runs, as the watchdog sees it.
type Watched struct {
	Lead    Lead
	Since   time.Time
	Limit   time.Duration // of time, 0 for none
	Memory  int64         // limit in bytes, 0 for none
	Disk    int64         // bytes that it may have in its sandbox when space is short; 0: a part of all
	Folder  string        // its sandbox
	Box     *MemoryBox    // the cgroup that keeps the limit, nil if there is none
	Peak    atomic.Int64  // of memory, as far as it was seen
	kills   int           // processes that the kernel had ended for memory when it began
	Exceeds func(limit wire.Outcome, why string)
	// Look is called when the command has run for WatchInterval, and then as long as it runs
	// after what it has returned; 0: no more. It must not block. nil: never.
	Look  func(now time.Time) time.Duration
	looks time.Time // when next
}

// Watchdog keeps attempts within their limits. One loop checks all of them, so
// that a short job pays nothing for it.
type Watchdog struct {
	sched     *sched.Scheduler
	computing func(bool)
	stop      context.CancelFunc
	group     sync.WaitGroup
	some      chan struct{} // an attempt has come or gone while the loop had nothing to do

	killsFile string
	scratch   *Scratch // of the loop

	mu      sync.Mutex // guards what follows
	running map[*Watched]bool
	resting bool      // the loop has nothing to do soon, unless attempts come or go
	kills   int       // for memory, as last counted
	counted time.Time // when that was
}

// NewWatchdog starts the loop. It calls computing when a command has run for longer than
// WatchInterval, and when none has any more, perhaps more often.
func NewWatchdog(s *sched.Scheduler, scratch *Scratch, computing func(bool)) *Watchdog {
	w := &Watchdog{
		sched: s, computing: computing, some: make(chan struct{}, 1), killsFile: KillsFile(), scratch: scratch,
		running: map[*Watched]bool{},
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.group.Go(func() { w.loop(ctx) })
	return w
}

// Close ends the loop.
func (w *Watchdog) Close() {
	w.stop()
	w.group.Wait()
}

// Add watches a command until remove.
func (w *Watchdog) Add(r *Watched) {
	w.mu.Lock()
	w.running[r] = true
	if r.Since.Sub(w.counted) >= WatchInterval {
		w.count(r.Since)
	}
	r.kills = w.kills
	w.wake()
	w.mu.Unlock()
}

// wake has the loop look in WatchInterval. Who calls it holds mu.
func (w *Watchdog) wake() {
	if w.resting {
		w.resting = false
		w.some <- struct{}{} // has room: the loop took the last before it rested again
	}
}

// Remove returns how many processes the kernel has ended for memory since add, as
// far as it is counted: not for short attempts, which could hardly fill a memory.
func (w *Watchdog) Remove(r *Watched) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, r)
	w.wake()
	if now := time.Now(); r.Box == nil && now.Sub(r.Since) >= WatchInterval {
		w.count(now)
	}
	return w.kills - r.kills
}

func (w *Watchdog) count(now time.Time) { w.kills, w.counted = oomKills(w.killsFile), now }

func (w *Watchdog) loop(ctx context.Context) {
	for w.sched.Sleep(ctx, WatchInterval) == nil {
		next := w.check(time.Now())
		if next <= WatchInterval {
			continue
		}
		waiting, cancel := context.WithTimeout(ctx, next-WatchInterval)
		_, err := sched.Receive(waiting, w.sched, w.some)
		cancel()
		if err != nil && !w.goesOn() {
			<-w.some
		}
	}
}

// goesOn notes that the loop has something to do. It reports false if it was told so meanwhile.
func (w *Watchdog) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	rested := w.resting
	w.resting = false
	return rested
}

// never is until when an attempt without limits need be looked at.
const never = time.Duration(math.MaxInt64)

// check checks all running attempts once and returns when it is to look again. The
// mutex is held so that none of them ends, and its files get closed, meanwhile.
func (w *Watchdog) check(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	computing, next := false, never
	for r := range w.running {
		next = min(next, w.checkOne(r, now))
		computing = computing || now.Sub(r.Since) >= WatchInterval
	}
	w.computing(computing)
	next = min(next, w.scratch.check(w.running, now))
	w.resting = next > WatchInterval
	return next
}

// checkOne returns when the attempt is to be checked again.
func (w *Watchdog) checkOne(r *Watched, now time.Time) time.Duration {
	spent, next := now.Sub(r.Since), never
	if spent < WatchInterval {
		next = WatchInterval
	}
	if r.Limit > 0 {
		next = min(next, max(WatchInterval, r.Limit-spent))
	}
	if r.Limit > 0 && spent > r.Limit {
		r.Exceeds(wire.Outcome_OUTCOME_OUT_OF_TIME, fmt.Sprintf("the job took longer than its limit of %s", r.Limit))
	}
	if r.Memory > 0 && r.Box == nil {
		w.checkMemory(r)
		next = WatchInterval
	}
	if r.Look != nil && spent >= WatchInterval {
		next = min(next, r.look(now))
	}
	return next
}

// look calls Look if it is due, and returns when it is next.
func (r *Watched) look(now time.Time) time.Duration {
	if !now.Before(r.looks) {
		after := r.Look(now)
		if after == 0 {
			r.Look = nil
			return never
		}
		r.looks = now.Add(after)
	}
	return max(WatchInterval, r.looks.Sub(now))
}

// checkMemory watches the memory that all processes of an attempt have in RAM,
// where no cgroup does so.
func (w *Watchdog) checkMemory(r *Watched) {
	resident := residentBytes(descendants([]int{r.Lead.pid}))
	r.Peak.Store(max(r.Peak.Load(), resident))
	if resident > r.Memory {
		r.Exceeds(wire.Outcome_OUTCOME_OUT_OF_MEMORY, fmt.Sprintf("the job needed %s of memory, more than its %s",
			quantity.Bytes(resident), quantity.Bytes(r.Memory)))
	}
}
