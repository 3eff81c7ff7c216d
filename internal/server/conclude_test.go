package server

import (
	"testing"

	"fairway/internal/taskqueue"
)

func TestOldestResultsGoFirst(t *testing.T) {
	results := []taskqueue.UnusedResult{{PFNs: []string{"a"}}, {PFNs: []string{"b"}}, {PFNs: []string{"c"}}}
	for keep, want := range map[int]int{0: 3, 2: 1, 3: 0, 100: 0} {
		gone, kept := oldest(results, keep)
		if len(gone) != want || len(kept) != 3-want || want == 1 && gone[0].PFNs[0] != "a" {
			t.Errorf("keep %d: %v go, %v stay", keep, gone, kept)
		}
	}
}
