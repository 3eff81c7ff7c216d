package flow

import (
	"strings"
	"testing"
)

func TestJobsWithTooLongNamesAreTold(t *testing.T) {
	long := strings.Repeat("x", 201)
	x := newWorld(t, "workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}\nsteps: {s: {each: 'raw/{n}', "+
		"writes: 's/{n}.txt', command: 'true'}}\n", nil)
	x.arrive("raw", "raw/"+long[:198])
	if len(x.jobs) > 0 || len(x.notes) != 1 || !strings.Contains(x.notes[0], "has 202 bytes, the limit is 200") {
		t.Errorf("%d jobs, notes %q", len(x.jobs), x.notes)
	}
	x.arrive("raw", "raw/"+long[:196])
	if len(x.jobs) != 1 {
		t.Errorf("%d jobs", len(x.jobs))
	}
}
