package stage

import (
	"testing"
	"time"
)

// What was fetched ahead is told of the attempt that reads it first, up to its turn: from
// then on somebody waited for it.
func TestWhatWasFetchedAheadIsToldUpToTheTurn(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	in := &Inputs{ahead: []fetchedAhead{{began, 3 * time.Second}}}
	for turn, want := range map[time.Duration]time.Duration{time.Minute: 3 * time.Second, time.Second: time.Second, -time.Second: 0} {
		if got := in.Ahead(began.Add(turn)); got != want {
			t.Errorf("with the turn after %v: %v ahead, want %v", turn, got, want)
		}
	}
	in.ahead = append(in.ahead, fetchedAhead{began.Add(time.Second), time.Second})
	if got := in.Ahead(began.Add(time.Minute)); got != 4*time.Second {
		t.Error("two files were fetched ahead for", got)
	}
}
