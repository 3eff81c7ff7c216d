package console

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// The progress of a call counts its own jobs, and those of others that go on.
func TestProgressLeavesOutWhatHadEnded(t *testing.T) {
	earlier := map[string]*wire.StepProgress{
		"map":  {Total: 3, Done: 1, Failed: 2},
		"exec": {Total: 1, Done: 1},
	}
	report := &wire.ProgressReport{Run: 1, Steps: []*wire.StepProgress{
		{Step: "exec", Total: 1, Done: 1},
		{Step: "map", Total: 5, Done: 2, Failed: 1, Running: 2}, // one of the failed runs again
		{Step: "other", Total: 1, Ready: 1},
	}}
	want := &wire.ProgressReport{Run: 1, Steps: []*wire.StepProgress{
		{Step: "map", Total: 2, Done: 1, Running: 2},
		{Step: "other", Total: 1, Ready: 1},
	}}
	if got := without(report, earlier); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := without(report, nil); got != report {
		t.Error(got)
	}
}
