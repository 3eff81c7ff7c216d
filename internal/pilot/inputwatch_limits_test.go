package pilot

import (
	"testing"

	"fairway/internal/pilot/process"
)

// What a command with very many inputs opens is not watched, unless that was asked for; an attempt of the
// step with fewer is, later.
func TestMergesOfManyFilesAreNotWatched(t *testing.T) {
	for _, c := range []struct {
		mode   WatchMode
		inputs int
		want   bool
	}{
		{WatchAuto, maxWatchedInputs, process.Unrestricted()},
		{WatchAuto, maxWatchedInputs + 1, false},
		{WatchAll, maxWatchedInputs + 1, true},
		{WatchNone, 1, false},
	} {
		w := &inputWatch{mode: c.mode, steps: map[string]bool{}}
		if got := w.wants("merge", c.inputs); got != c.want {
			t.Errorf("%s watches an attempt with %d inputs: %v", c.mode, c.inputs, got)
		}
	}
}
