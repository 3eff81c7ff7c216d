package orwl

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocation(t, "l", 8)
		var trace Trace
		trace.Attach(l)
		first, second := Handle{Name: "first"}, Handle{Name: "second"}
		must(t, first.WriteRequest(l))
		must(t, second.WriteRequest(l))
		time.AfterFunc(3*time.Second, func() { must(t, first.Release()) })
		must(t, second.Acquire(background))
		<-time.After(time.Second)
		must(t, second.Release())
		if got := trace.Times()["second"]; got.Waiting != 3*time.Second || got.Requests != 1 || got.WaitingShare() != 0.75 {
			t.Fatalf("got %+v", got)
		}
		if got := trace.Times()["first"]; got.Holding != 3*time.Second || got.Waiting != 0 {
			t.Fatalf("got %+v", got)
		}
		if w := waitsIn(t, &trace, "second"); len(w) != 1 || w[0].Dur != 3e6 || w[0].Args["released by"] != "first" {
			t.Fatalf("the spans of waiting are %+v", w)
		}
	})
}

// writtenEvent is what a test reads of an event in a trace that was written.
type writtenEvent struct {
	Name string
	Ph   string
	TID  int
	Dur  float64
	Args map[string]string
}

// waitsIn writes the trace and returns the spans in which a task waited for
// location l.
func waitsIn(t *testing.T, trace *Trace, task string) (waits []writtenEvent) {
	t.Helper()
	var out bytes.Buffer
	_, err := trace.WriteTo(&out)
	must(t, err)
	var file struct{ TraceEvents []writtenEvent }
	must(t, json.Unmarshal(out.Bytes(), &file))
	row := -1
	for _, e := range file.TraceEvents {
		switch {
		case e.Ph == "M" && e.Args["name"] == task:
			row = e.TID
		case e.Name == "waits for l" && e.TID == row:
			waits = append(waits, e)
		}
	}
	return waits
}

// A wait counts also when it is withdrawn, and while it lasts.
func TestTraceOfWaitsWithoutGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocation(t, "l", 8)
		var trace Trace
		trace.Attach(l)
		holder, gone, waits := Handle{Name: "holder"}, Handle{Name: "gone"}, Handle{Name: "waits"}
		must(t, holder.WriteRequest(l))
		must(t, gone.WriteRequest(l))
		must(t, waits.WriteRequest(l))
		done := make(chan error, 1)
		go func() { done <- waits.Acquire(background) }()
		ctx, cancel := context.WithTimeout(background, 2*time.Second)
		defer cancel()
		if gone.Acquire(ctx) == nil {
			t.Fatal("granted")
		}
		<-time.After(time.Second)
		times, at := trace.Times(), trace.LocationTimes()["l"]
		if got := times["gone"]; got.Waiting != 2*time.Second || got.Requests != 0 || got.WaitingShare() != 1 {
			t.Errorf("the withdrawn request: %+v", got)
		}
		if got := times["waits"]; got.Waiting != 3*time.Second {
			t.Errorf("the request that waits: %+v", got)
		}
		if at.Waiting != 5*time.Second || at.Holding != 3*time.Second {
			t.Errorf("the location: %+v", at)
		}
		for _, task := range []string{"gone", "waits"} {
			if len(waitsIn(t, &trace, task)) != 1 {
				t.Errorf("no span of waiting for %s", task)
			}
		}
		must(t, holder.Release())
		must(t, <-done)
		must(t, waits.Release())
	})
}

func TestTraceIsBounded(t *testing.T) {
	l := newLocation(t, "l", 8)
	trace := Trace{MaxSpans: 3}
	trace.Attach(l)
	var p Pair
	p.SetName("p")
	must(t, p.WriteRequest(l))
	for range 10 {
		must(t, p.Acquire(background))
		must(t, p.Release())
	}
	if len(trace.spans) != 3 || trace.dropped != 7 || trace.Times()["p"].Requests != 11 { // with the one under way
		t.Fatalf("%d spans, %d dropped, %+v", len(trace.spans), trace.dropped, trace.Times())
	}
}
