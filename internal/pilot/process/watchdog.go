package process

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// WatchInterval is how often the watchdog checks running attempts: their time, and their
// memory where no cgroup limits it. Limits may be passed for that long.
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
	Box     *MemoryBox    // the cgroup that keeps the limit, nil if there is none
	Peak    atomic.Int64  // of memory, as far as it was seen
	kills   int           // processes that the kernel had ended for memory when it began
	Exceeds func(limit wire.Outcome, why string)
}

// Watchdog keeps attempts within their limits. One loop checks all of them, so
// that a short job pays nothing for it.
type Watchdog struct {
	sched     *sched.Scheduler
	computing func(bool)
	stop      context.CancelFunc
	group     sync.WaitGroup
	some      chan struct{} // there is an attempt again

	killsFile string

	mu      sync.Mutex // guards what follows
	running map[*Watched]bool
	kills   int       // for memory, as last counted
	counted time.Time // when that was
}

// NewWatchdog starts the loop. It calls computing at each check, and says whether a command
// has run for longer than WatchInterval.
func NewWatchdog(s *sched.Scheduler, computing func(bool)) *Watchdog {
	w := &Watchdog{
		sched: s, computing: computing, some: make(chan struct{}, 1), killsFile: KillsFile(), running: map[*Watched]bool{},
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
	first := len(w.running) == 0
	w.running[r] = true
	if r.Since.Sub(w.counted) >= WatchInterval {
		w.count(r.Since)
	}
	r.kills = w.kills
	w.mu.Unlock()
	if first {
		select {
		case w.some <- struct{}{}:
		default:
		}
	}
}

// Remove returns how many processes the kernel has ended for memory since add, as
// far as it is counted: not for short attempts, which could hardly fill a memory.
func (w *Watchdog) Remove(r *Watched) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, r)
	if now := time.Now(); r.Box == nil && now.Sub(r.Since) >= WatchInterval {
		w.count(now)
	}
	return w.kills - r.kills
}

func (w *Watchdog) count(now time.Time) { w.kills, w.counted = oomKills(w.killsFile), now }

func (w *Watchdog) loop(ctx context.Context) {
	for {
		if w.sched.Sleep(ctx, WatchInterval) != nil {
			return
		}
		if w.check(time.Now()) > 0 {
			continue
		}
		if _, err := sched.Receive(ctx, w.sched, w.some); err != nil {
			return
		}
	}
}

// check checks all running attempts once and returns how many there are. The
// mutex is held so that none of them ends, and its files get closed, meanwhile.
func (w *Watchdog) check(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) > 0 {
		w.count(now)
	}
	computing := false
	for r := range w.running {
		w.checkOne(r, now)
		computing = computing || now.Sub(r.Since) >= WatchInterval
	}
	w.computing(computing)
	return len(w.running)
}

func (w *Watchdog) checkOne(r *Watched, now time.Time) {
	spent := now.Sub(r.Since)
	if r.Limit > 0 && spent > r.Limit {
		r.Exceeds(wire.Outcome_OUTCOME_OUT_OF_TIME, fmt.Sprintf("the job took longer than its limit of %s", r.Limit))
	}
	if r.Memory > 0 && r.Box == nil {
		w.checkMemory(r)
	}
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
