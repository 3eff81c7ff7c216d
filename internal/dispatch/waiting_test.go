package dispatch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// Explain says what an attempt waits for at its pilot, and a server that is away is told of once.
func TestExplainTellsOfInputsThatDoNotCome(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.Submit{
		Run:   1,
		Files: []taskqueue.ExistingFile{{LFN: "in", PFN: "https://se/in", Size: 20, Identity: "x", Tag: 1 << 63}},
		Jobs:  []taskqueue.Job{{Name: "j", Step: "s", Reads: []string{"in"}}},
	})
	b.sync("p", nil)
	a := b.begins("p")
	waits := taskqueue.WaitingInput{Attempt: a.Attempt, LFN: "in", Source: "q", Bytes: 5, For: 5 * time.Second}
	events := 0
	tell := func(change func(*taskqueue.Sync)) {
		b.seq["p"]++
		s := taskqueue.Sync{Pilot: "p", Seq: b.seq["p"], LastAnswer: b.last["p"], Hold: true}
		change(&s)
		for _, e := range b.step(s).Events {
			if e.Kind == taskqueue.ServerAway && e.Name == "https://se" {
				events++
			}
		}
	}
	for range 3 {
		tell(func(s *taskqueue.Sync) {
			s.Waiting = []taskqueue.WaitingInput{waits, {Attempt: a.Attempt, LFN: "other"}, {Attempt: 99, LFN: "in"}}
			s.Away = []taskqueue.AwayServer{{Server: "https://se", Reason: "connection refused"}}
		})
	}
	e, _ := b.core.Explain(a.Job)
	text := strings.Join(explain.Lines(&e), "\n")
	for _, want := range []string{"input in", "cache of pilot q", "5 B of 20 B", "1 B a second", "https://se is away"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "other") || events != 1 {
		t.Errorf("%d events, and:\n%s", events, text)
	}
	waits.Source = "https://se"
	tell(func(s *taskqueue.Sync) { s.Waiting = []taskqueue.WaitingInput{waits} })
	e, _ = b.core.Explain(a.Job)
	if text := strings.Join(explain.Lines(&e), "\n"); !strings.Contains(text, "read from https://se for 5s: 5 B of 20 B") {
		t.Errorf("of storage it says: %s", text)
	}
	waits.Bytes, waits.Source = 0, ""
	tell(func(s *taskqueue.Sync) { s.Waiting = []taskqueue.WaitingInput{waits} })
	e, _ = b.core.Explain(a.Job)
	if text := strings.Join(explain.Lines(&e), "\n"); !strings.Contains(text, "read from storage for 5s") ||
		strings.Contains(text, "have come") {
		t.Errorf("of storage of which nothing has come it says: %s", text)
	}
	tell(func(*taskqueue.Sync) {})
	ofInput := func(l string) bool { return strings.Contains(l, "input") }
	if e, _ := b.core.Explain(a.Job); slices.ContainsFunc(explain.Lines(&e), ofInput) {
		t.Errorf("it has come: %v", explain.Lines(&e))
	}
}
