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

// MindInterval is how often running attempts are looked at: their time, and their
// memory where no cgroup limits it. Limits may be passed for that long.
const MindInterval = 100 * time.Millisecond

// endedContext has ended: it allows no grace.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// minder keeps attempts within their limits. One loop minds all of them, so
// that a short job pays nothing for it.
type minder struct {
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

func newMinder(cfg *Config, s *sched.Scheduler) *minder {
	m := &minder{cfg: cfg, sched: s, some: make(chan struct{}, 1), killsFile: killsFile(), running: map[*running]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.group.Go(func() { m.loop(ctx) })
	return m
}

func (m *minder) close() {
	m.stop()
	m.group.Wait()
}

func (m *minder) add(r *running) {
	m.mu.Lock()
	first := len(m.running) == 0
	m.running[r] = true
	if r.since.Sub(m.counted) >= MindInterval {
		m.count(r.since)
	}
	r.kills = m.kills
	m.mu.Unlock()
	if first {
		select {
		case m.some <- struct{}{}:
		default:
		}
	}
}

// remove returns how many processes the kernel has ended for memory since add, as
// far as it is counted: not for short attempts, which could hardly fill a memory.
func (m *minder) remove(r *running) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, r)
	if now := time.Now(); r.box == nil && now.Sub(r.since) >= MindInterval {
		m.count(now)
	}
	return m.kills - r.kills
}

func (m *minder) count(now time.Time) { m.kills, m.counted = oomKills(m.killsFile), now }

func (m *minder) loop(ctx context.Context) {
	for {
		if m.sched.Sleep(ctx, MindInterval) != nil {
			return
		}
		if m.mind(time.Now()) > 0 {
			continue
		}
		if _, err := sched.Receive(ctx, m.sched, m.some); err != nil {
			return
		}
	}
}

// mind looks at all running attempts once and says how many there are. The
// mutex is held so that none of them ends, and its files get closed, meanwhile.
func (m *minder) mind(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.running) > 0 {
		m.count(now)
	}
	computing := false
	for r := range m.running {
		m.mindOne(r, now)
		computing = computing || now.Sub(r.since) >= MindInterval
	}
	m.cfg.useProcessors(computing)
	return len(m.running)
}

func (m *minder) mindOne(r *running, now time.Time) {
	spent := now.Sub(r.since)
	if r.limit > 0 && spent > r.limit {
		r.stop(wire.Outcome_OUTCOME_OUT_OF_TIME, fmt.Sprintf("the job took longer than its limit of %s", r.limit))
	}
	if r.memory > 0 && r.box == nil {
		m.mindMemory(r)
	}
}

// mindMemory watches the memory that all processes of an attempt have in RAM,
// where no cgroup does so.
func (m *minder) mindMemory(r *running) {
	resident := residentBytes(descendants([]int{r.lead.pid}))
	r.peak.Store(max(r.peak.Load(), resident))
	if resident > r.memory {
		r.stop(wire.Outcome_OUTCOME_OUT_OF_MEMORY, fmt.Sprintf("the job needed %s of memory, more than its %s", quantity.Bytes(resident), quantity.Bytes(r.memory)))
	}
}
