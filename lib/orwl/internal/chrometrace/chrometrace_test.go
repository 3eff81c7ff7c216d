package chrometrace

import (
	"testing"
	"time"
)

// A trace shows what a task holds in its row and in that of the location, and what it waits for in its own.
func TestTracesShowBothSides(t *testing.T) {
	begin := time.Now()
	f := fileOf([]Span{
		{Task: "a", Location: "l", Mode: "write", Waits: true, Start: begin, Length: time.Second, By: "b"},
		{Task: "a", Location: "l", Mode: "write", Start: begin.Add(time.Second), Length: time.Second},
	}, 3)
	var got []string
	for _, e := range f.Events {
		if e.Phase == "X" {
			got = append(got, e.Name)
		}
	}
	if len(got) != 3 || f.Dropped != 3 || got[0] != "waits for l" || f.Events[len(f.Events)-1].Start != 1e6 {
		t.Errorf("%q, %+v", got, f)
	}
}
