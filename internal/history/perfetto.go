package history

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"
)

// traceEvent is an event of the Trace Event Format, which Perfetto and browsers read: "Trace Event
// Format", Google 2016. Times are in microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Kind  string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  int64          `json:"ts"`
	Span  *int64         `json:"dur,omitempty"`
	Host  int            `json:"pid"`
	Line  int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Perfetto writes the attempts of a run for https://ui.perfetto.dev: hosts are its processes, and
// each slot of a pilot is a thread. In each attempt are its staging and its computing.
func (r *Run) Perfetto(to io.Writer) error {
	begin, _ := r.Bounds()
	out := &trace{w: bufio.NewWriter(to), begin: begin}
	out.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	pilots := r.attemptsByPilot()
	hosts := map[string]int{}
	line := 0
	for _, pilot := range slices.Sorted(maps.Keys(pilots)) {
		host := pilots[pilot][0].attempt.Host
		if hosts[host] == 0 {
			hosts[host] = len(hosts) + 1
			out.event(traceEvent{Name: "process_name", Phase: "M", Host: hosts[host], Args: map[string]any{"name": host}})
		}
		var free []time.Time // when each slot is
		for _, p := range pilots[pilot] {
			at := slices.IndexFunc(free, func(t time.Time) bool { return !t.After(p.attempt.Begin()) })
			if at < 0 {
				at = len(free)
				free = append(free, time.Time{})
				out.event(traceEvent{
					Name: "thread_name", Phase: "M", Host: hosts[host], Line: line + at + 1, Args: map[string]any{"name": pilot},
				})
			}
			free[at] = p.attempt.Ended()
			out.attempt(p, hosts[host], line+at+1)
		}
		line += len(free)
	}
	out.text("]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// trace writes events until one cannot be written.
type trace struct {
	w     *bufio.Writer
	begin time.Time
	some  bool
	err   error
}

func (t *trace) text(text string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(text)
	}
}

func (t *trace) event(e traceEvent) {
	if t.some {
		t.text(",\n")
	}
	t.some = true
	text, err := json.Marshal(e)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.text(string(text))
}

func (t *trace) attempt(p placed, host, line int) {
	a := p.attempt
	args := map[string]any{
		"step": p.job.Step, "job": p.job.ID, "outcome": a.Outcome, "bytes read": a.BytesRead,
		"of these from caches": a.BytesCached, "bytes written": a.BytesOut, "memory": a.MaxRSS,
	}
	t.span(p.job.Name, p.job.Step, a.Begin(), a.Ended(), host, line, args)
	if a.Start.IsZero() {
		return
	}
	t.span("stage in", "staging", a.Begin(), a.Start, host, line, nil)
	t.span("compute", "computing", a.Start, a.End, host, line, nil)
	t.span("stage out", "staging", a.End, a.Ended(), host, line, nil)
}

func (t *trace) span(name, kind string, from, to time.Time, host, line int, args map[string]any) {
	if to.Before(from) || to.Equal(from) && args == nil {
		return
	}
	span := to.Sub(from).Microseconds()
	t.event(traceEvent{name, kind, "X", from.Sub(t.begin).Microseconds(), &span, host, line, args})
}
