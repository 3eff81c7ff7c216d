package pilot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/wire"
	"fairway/sched"
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

// watchdog keeps attempts within their limits. One loop checks all of them, so
// that a short job pays nothing for it.
type watchdog struct {
	cfg   *Config
	sched *sched.Scheduler
	stop  context.CancelFunc
	group sync.WaitGroup
	some  chan struct{} // there is an attempt again

	killsFile string

	mu      sync.Mutex // guards what follows
	running map[*running]bool
	kills   int       // for memory, as last counted
	counted time.Time // when that was
}

func newWatchdog(cfg *Config, s *sched.Scheduler) *watchdog {
	w := &watchdog{cfg: cfg, sched: s, some: make(chan struct{}, 1), killsFile: killsFile(), running: map[*running]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.group.Go(func() { w.loop(ctx) })
	return w
}

func (w *watchdog) close() {
	w.stop()
	w.group.Wait()
}

func (w *watchdog) add(r *running) {
	w.mu.Lock()
	first := len(w.running) == 0
	w.running[r] = true
	if r.since.Sub(w.counted) >= WatchInterval {
		w.count(r.since)
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

// remove returns how many processes the kernel has ended for memory since add, as
// far as it is counted: not for short attempts, which could hardly fill a memory.
func (w *watchdog) remove(r *running) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, r)
	if now := time.Now(); r.box == nil && now.Sub(r.since) >= WatchInterval {
		w.count(now)
	}
	return w.kills - r.kills
}

func (w *watchdog) count(now time.Time) { w.kills, w.counted = oomKills(w.killsFile), now }

func (w *watchdog) loop(ctx context.Context) {
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
func (w *watchdog) check(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) > 0 {
		w.count(now)
	}
	computing := false
	for r := range w.running {
		w.checkOne(r, now)
		computing = computing || now.Sub(r.since) >= WatchInterval
	}
	w.cfg.useProcessors(computing)
	return len(w.running)
}

func (w *watchdog) checkOne(r *running, now time.Time) {
	spent := now.Sub(r.since)
	if r.limit > 0 && spent > r.limit {
		r.stop(wire.Outcome_OUTCOME_OUT_OF_TIME, fmt.Sprintf("the job took longer than its limit of %s", r.limit))
	}
	if r.memory > 0 && r.box == nil {
		w.checkMemory(r)
	}
}

// checkMemory watches the memory that all processes of an attempt have in RAM,
// where no cgroup does so.
func (w *watchdog) checkMemory(r *running) {
	resident := residentBytes(descendants([]int{r.lead.pid}))
	r.peak.Store(max(r.peak.Load(), resident))
	if resident > r.memory {
		r.stop(wire.Outcome_OUTCOME_OUT_OF_MEMORY, fmt.Sprintf("the job needed %s of memory, more than its %s", quantity.Bytes(resident), quantity.Bytes(r.memory)))
	}
}
