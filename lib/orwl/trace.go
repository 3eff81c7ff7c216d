package orwl

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/lib/orwl/internal/chrometrace"
)

// DefaultMaxSpans is how many spans a Trace keeps. Further ones are counted as
// dropped; Times goes on.
const DefaultMaxSpans = 1 << 18

// Trace records who waited for whom at the locations it was attached to. Its
// zero value is ready for use. Tasks go by the names of their handles.
type Trace struct {
	// MaxSpans limits the spans kept; 0 means DefaultMaxSpans.
	MaxSpans int

	mu      sync.Mutex
	spans   []chrometrace.Span
	dropped int
	times   map[string]TaskTimes
	places  map[string]TaskTimes        // by location
	open    map[*tracedRequest]struct{} // under way
}

// TaskTimes sums up one task.
type TaskTimes struct {
	// Requests counts those that were granted.
	Requests int
	// Waiting is the time in Acquire, also of requests that were withdrawn or lost;
	// Holding from grant to release.
	Waiting, Holding time.Duration
	// Total is the time from the first request to the end of the last one.
	Total time.Duration

	first time.Time
}

// WaitingShare returns the part of Total in which the task waited, from 0 to 1.
func (t TaskTimes) WaitingShare() float64 {
	if t.Total == 0 {
		return 0
	}
	return float64(t.Waiting) / float64(t.Total)
}

// tracedRequest is what a trace knows of a request. Times and by are under the lock
// of the trace.
type tracedRequest struct {
	trace          *Trace
	task, location string
	mode           Mode
	posted         time.Time
	slept          time.Time // zero while Acquire did not have to wait
	begin          time.Time // of the grant; zero before
	by             string
}

// Attach starts recording requests that are posted at the resources from now
// on. At a mirror these are the requests of this process; at a location those of
// all, also by way of other processes.
func (t *Trace) Attach(resources ...Resource) {
	for _, r := range resources {
		r.attach(t)
	}
}

func (l *Location) attach(t *Trace) {
	l.lock()
	defer l.mu.Unlock()
	l.trace = t
}

func (t *Trace) requested(h *Handle, location string, m Mode) {
	r := &tracedRequest{trace: t, task: h.Name, posted: time.Now(), location: location, mode: m}
	h.traced, h.detour = r, true
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open, t.times, t.places = make(map[*tracedRequest]struct{}), make(map[string]TaskTimes), make(map[string]TaskTimes)
	}
	t.open[r] = struct{}{}
}

// sleeps notes that Acquire has to wait.
func (r *tracedRequest) sleeps() {
	r.trace.mu.Lock()
	defer r.trace.mu.Unlock()
	r.slept = time.Now()
}

// grant notes the time, and whose release led to the grant.
func (r *tracedRequest) grant(by string) {
	r.trace.mu.Lock()
	defer r.trace.mu.Unlock()
	r.begin, r.by = time.Now(), by
}

// end notes that the request is released, withdrawn or lost. Only the first call
// counts, and none is needed for a request that nobody traces.
func (r *tracedRequest) end() {
	if r == nil {
		return
	}
	t, now := r.trace, time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.open[r]; !ok {
		return
	}
	delete(t.open, r)
	for _, s := range r.spans(now) {
		t.add(s)
	}
	t.times[r.task] = t.times[r.task].with(r, now)
	t.places[r.location] = t.places[r.location].with(r, now)
}

// spans returns the time in which the request waited, and that in which it was held, as
// far as they have come by now.
func (r *tracedRequest) spans(now time.Time) (spans []chrometrace.Span) {
	granted := now
	if !r.begin.IsZero() {
		granted = r.begin
	}
	span := chrometrace.Span{Task: r.task, Location: r.location, Mode: r.mode.String(), By: r.by}
	if !r.slept.IsZero() && granted.After(r.slept) {
		span.Waits, span.Start, span.Length = true, r.slept, granted.Sub(r.slept)
		spans = append(spans, span)
	}
	if !r.begin.IsZero() {
		span.Waits, span.Start, span.Length = false, r.begin, now.Sub(r.begin)
		spans = append(spans, span)
	}
	return spans
}

// with adds a request.
func (t TaskTimes) with(r *tracedRequest, now time.Time) TaskTimes {
	if !r.begin.IsZero() {
		t.Requests++
	}
	for _, s := range r.spans(now) {
		if s.Waits {
			t.Waiting += s.Length
		} else {
			t.Holding += s.Length
		}
	}
	if t.first.IsZero() || r.posted.Before(t.first) {
		t.first = r.posted
	}
	t.Total = max(t.Total, now.Sub(t.first))
	return t
}

func (t *Trace) add(s chrometrace.Span) {
	limit := t.MaxSpans
	if limit == 0 {
		limit = DefaultMaxSpans
	}
	if len(t.spans) >= limit {
		t.dropped++
		return
	}
	t.spans = append(t.spans, s)
}

// Times returns the sums of each task, with what is under way.
func (t *Trace) Times() map[string]TaskTimes {
	return t.withOpen(&t.times, func(r *tracedRequest) string { return r.task })
}

// LocationTimes returns the same sums for each location, by name, over all tasks.
// Waits of several tasks add up, so their share can be above 1.
func (t *Trace) LocationTimes() map[string]TaskTimes {
	return t.withOpen(&t.places, func(r *tracedRequest) string { return r.location })
}

// withOpen returns sums, which are read with the mutex held, with the requests
// that are under way.
func (t *Trace) withOpen(sums *map[string]TaskTimes, key func(*tracedRequest) string) map[string]TaskTimes {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, now := maps.Clone(*sums), time.Now()
	for r := range t.open {
		all[key(r)] = all[key(r)].with(r, now)
	}
	return all
}

// WriteTo writes the trace in the Trace Event Format of Chrome, which Perfetto
// reads too: one row for each task, with spans of waiting and holding, and one
// for each location, with spans of holding.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	t.mu.Lock()
	spans, dropped, now := slices.Clone(t.spans), t.dropped, time.Now()
	for r := range t.open {
		spans = append(spans, r.spans(now)...)
	}
	t.mu.Unlock()
	b, err := chrometrace.Encode(spans, dropped)
	if err != nil {
		return 0, fmt.Errorf("encoding the trace: %w", err)
	}
	n, err := w.Write(b)
	return int64(n), err
}
