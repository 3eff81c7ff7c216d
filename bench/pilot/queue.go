package main

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
	"fairway/lib/sched"
)

// hold is how long an answer waits for news.
const hold = 10 * time.Second

// arrival is the report of an attempt's end, and when it came, by clock.
type arrival struct {
	result *wire.Result
	at     time.Duration
}

// queue is the TaskQueue of one pilot.
type queue struct {
	sched    *sched.Scheduler
	arrivals chan arrival

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something changes
	newest  uint64        // Sync
	number  uint64        // of the last answer
	attempt uint64        // the last one handed out
	run     []*wire.Assignment
	known   map[uint64]bool // attempts whose report has come
	news    bool
	leave   bool
}

// listen serves a new queue on a socket until stop is called.
func listen(s *sched.Scheduler, socket string) (q *queue, stop func(), err error) {
	q = &queue{sched: s, arrivals: make(chan arrival, 1), changed: make(chan struct{}), known: map[uint64]bool{}}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(wire.NewTaskQueueHandler(q))
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	return q, func() { _ = server.Close() }, nil
}

// Sync is the wire service.
func (q *queue) Sync(ctx context.Context, m *wire.SyncRequest) (*wire.SyncAnswer, error) {
	at := clock()
	q.take(m, at)
	for until := time.Now().Add(hold); ; {
		answer, changed := q.answer(m, time.Now().After(until))
		if answer != nil {
			return answer, nil
		}
		wait, cancel := context.WithDeadline(ctx, until)
		_, _ = sched.Receive(wait, q.sched, changed)
		cancel()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// take notes what a Sync reports, and passes ends on.
func (q *queue) take(m *wire.SyncRequest, at time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.newest = max(q.newest, m.GetSeq())
	for _, a := range m.GetStarted() {
		q.forget(a.GetAttempt())
	}
	for _, report := range m.GetEnded() {
		r := report.GetResult()
		q.forget(r.GetAttempt())
		q.news = true
		if !q.known[r.GetAttempt()] && !q.leave {
			q.known[r.GetAttempt()] = true
			q.arrivals <- arrival{r, at}
		}
	}
	q.change()
}

func (q *queue) forget(attempt uint64) {
	q.run = slices.DeleteFunc(q.run, func(a *wire.Assignment) bool { return a.GetAttempt() == attempt })
}

// change wakes the Syncs that are held. The caller holds the mutex.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// answer returns the answer to a Sync, or what to wait for when there is none yet.
func (q *queue) answer(m *wire.SyncRequest, overdue bool) (*wire.SyncAnswer, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case m.GetSeq() < q.newest:
		return &wire.SyncAnswer{Superseded: true}, nil
	case !q.news && !overdue && m.GetHold():
		return nil, q.changed
	}
	q.news = false
	q.number++
	return &wire.SyncAnswer{
		Number: q.number, Seen: m.GetSeq(), Run: slices.Clone(q.run), LeaveNow: q.leave, NextSync: durationpb.New(hold),
	}, nil
}

// start hands a job to the pilot.
func (q *queue) start(argv []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attempt++
	payload, err := proto.Marshal(&wire.Payload{Argv: argv})
	if err != nil {
		panic(err) // argv is ours
	}
	q.run = append(q.run, &wire.Assignment{
		Job: uint32(q.attempt), Attempt: q.attempt, Name: "job", Step: "job", Try: 1,
		Payload: payload, Needs: &wire.Resources{MilliCpus: 1000},
	})
	q.news = true
	q.change()
}

// dismiss tells the pilot to end its jobs and to leave.
func (q *queue) dismiss() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leave, q.news = true, true
	q.change()
}
