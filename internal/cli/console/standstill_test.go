package console

import (
	"testing"

	"fairway/internal/wire"
)

// Jobs on silent pilots are no progress.
func TestASilentPilotIsAStandstill(t *testing.T) {
	s := standstill{pause: standstillTime}
	s.observe(&wire.ProgressReport{Steps: []*wire.StepProgress{{Running: 2}}, RunningUnheard: 2})
	if s.since.IsZero() {
		t.Error("that all that runs is not heard of is not noticed")
	}
	s.observe(&wire.ProgressReport{Steps: []*wire.StepProgress{{Running: 3}}, RunningUnheard: 2})
	if !s.since.IsZero() {
		t.Error("a job runs")
	}
}
