package stage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/access"
	"fairway/internal/pilot/report"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// Waits are the inputs that attempts wait for, and the servers of files that are away, for people who ask why a
// job does not begin. Any goroutine may call its methods.
type Waits struct {
	// Wake is called when an input does not come at once. It may be nil.
	Wake func()

	mu     sync.Mutex // guards what follows
	inputs []*wait
	away   map[string]away
}

// WaitTold is how long an input may take before the TaskQueue is told of it.
const WaitTold = 2 * time.Second

// awayTold is how long a server counts as away after a try that found it so: tries follow each other sooner.
const awayTold = 45 * time.Second

// wait is for one input. The mutex of Waits guards source, arrival and came.
type wait struct {
	attempt uint64
	lfn     string
	since   time.Time
	source  string         // the pilot, or the server of files, that it is read from; empty: storage
	arrival *share.Arrival // what has come from a pilot
	came    *atomic.Int64  // bytes that have come from storage by a network
}

type away struct {
	why  string
	last time.Time
}

// begin says that an attempt waits for an input, until the result is called.
func (ws *Waits) begin(attempt uint64, i *input) (end func()) {
	w := &wait{attempt: attempt, lfn: i.LFN, since: time.Now()}
	ws.mu.Lock()
	ws.inputs = append(ws.inputs, w)
	ws.mu.Unlock()
	i.wait = w
	late := time.AfterFunc(WaitTold, func() {
		if ws.Wake != nil {
			ws.Wake()
		}
	})
	return func() {
		late.Stop()
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.inputs = slices.DeleteFunc(ws.inputs, func(o *wait) bool { return o == w })
		i.wait = nil
	}
}

// from says that an input comes from another pilot now; with nil, that it does not any more.
func (ws *Waits) from(i *input, source *wire.Source, a *share.Arrival) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i.wait != nil {
		i.wait.source, i.wait.arrival, i.wait.came = source.GetPilot(), a, nil
	}
}

// fromStorage says that an input comes from a storage element now. The transfer of the context that it
// returns tells how much of it has come.
func (ws *Waits) fromStorage(ctx context.Context, i *input) context.Context {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i.wait == nil {
		return ctx
	}
	i.wait.source, i.wait.arrival, i.wait.came = "", nil, new(atomic.Int64)
	if strings.Contains(i.pfn, "://") { // else the server of the run or a file system has it
		i.wait.source = storage.ServerOf(i.pfn)
	}
	return storage.WithCame(ctx, i.wait.came)
}

// Away says that the server of a file is away.
func (ws *Waits) Away(pfn string, why error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.away == nil {
		ws.away = map[string]away{}
	}
	server := storage.ServerOf(pfn)
	_, known := ws.away[server]
	if !known && len(ws.away) >= access.MaxAway {
		return
	}
	ws.away[server] = away{report.Clip(report.FirstLine(why.Error())), time.Now()}
	if !known && ws.Wake != nil {
		ws.Wake()
	}
}

// Some reports whether there is something to tell that changes as time passes.
func (ws *Waits) Some() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.away) > 0 || slices.ContainsFunc(ws.inputs, (*wait).isLong)
}

func (w *wait) isLong() bool { return time.Since(w.since) >= WaitTold }

// Carry puts into a message what is waited for.
func (ws *Waits) Carry(m *wire.SyncRequest) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.inputs {
		if w.isLong() && len(m.Waiting) < access.MaxWaiting {
			told := &wire.WaitingInput{
				Attempt: w.attempt, Lfn: w.lfn, Source: w.source, Milliseconds: time.Since(w.since).Milliseconds(),
			}
			if w.arrival != nil {
				told.Bytes = w.arrival.Came()
			} else if w.came != nil {
				told.Bytes = w.came.Load()
			}
			m.Waiting = append(m.Waiting, told)
		}
	}
	for server, a := range ws.away {
		if time.Since(a.last) > awayTold {
			delete(ws.away, server)
			continue
		}
		m.Away = append(m.Away, &wire.AwayServer{Server: server, Reason: a.why})
	}
	slices.SortFunc(m.Away, func(a, b *wire.AwayServer) int { return cmp.Compare(a.GetServer(), b.GetServer()) })
}
