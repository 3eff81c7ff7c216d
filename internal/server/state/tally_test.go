package state

import (
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// Of the stage-in of all attempts, that before their turns is hidden behind computing.
func TestHiddenStageInIsSummed(t *testing.T) {
	var s sums
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.add(&taskqueue.Usage{
		StageInStart: start, Start: start.Add(time.Second), End: start.Add(time.Minute), StagedAhead: 3 * time.Second,
	})
	s.add(&taskqueue.Usage{StageInStart: start, Start: start.Add(4 * time.Second), End: start.Add(time.Minute)})
	s.add(&taskqueue.Usage{StageInStart: start, StagedAhead: time.Hour}) // its command never started
	if s.stageIn != 8*time.Second || s.hidden != 3*time.Second || s.staging != 5*time.Second {
		t.Errorf("stage-in %v, hidden %v, held up %v", s.stageIn, s.hidden, s.staging)
	}
}
