package api

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// A job is silent when no pilot is heard that has an attempt of it.
func TestJobsOfSilentPilots(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, c := range []struct {
		silent []time.Time // of the pilot of each attempt
		want   time.Time
	}{
		{nil, time.Time{}},
		{[]time.Time{{}}, time.Time{}},
		{[]time.Time{early}, early},
		{[]time.Time{early, {}}, time.Time{}},
		{[]time.Time{early, late}, late},
	} {
		var attempts []taskqueue.AttemptView
		for _, since := range c.silent {
			attempts = append(attempts, taskqueue.AttemptView{Silent: since})
		}
		got := silentSince(attempts)
		if got == nil != c.want.IsZero() || got != nil && !got.AsTime().Equal(c.want) {
			t.Errorf("of pilots silent since %v: %v, want %v", c.silent, got, c.want)
		}
	}
}

// The totals of a listing are those of the steps and states that are asked for.
func TestTotalsOfWhatIsAskedFor(t *testing.T) {
	step := func(name string, done, failed int) taskqueue.StepTotals {
		s := taskqueue.StepTotals{Step: name}
		s.ByState[taskqueue.Done], s.ByState[taskqueue.Failed] = done, failed
		return s
	}
	steps := []taskqueue.StepTotals{step("a", 3, 1), step("b", 10, 0), step("c", 0, 0)}
	for name, c := range map[string]struct {
		request *wire.ListJobsRequest
		total   int64
		states  map[string]int64
	}{
		"all":     {&wire.ListJobsRequest{}, 14, map[string]int64{"done": 13, "failed": 1}},
		"a step":  {&wire.ListJobsRequest{Steps: []string{"a"}}, 4, map[string]int64{"done": 3, "failed": 1}},
		"a state": {&wire.ListJobsRequest{States: []string{"failed"}}, 1, map[string]int64{"done": 13, "failed": 1}},
		"both": {
			&wire.ListJobsRequest{Steps: []string{"b", "c"}, States: []string{"failed"}}, 0, map[string]int64{"done": 10},
		},
		"no jobs":  {&wire.ListJobsRequest{Steps: []string{"c"}}, 0, map[string]int64{}},
		"no steps": {&wire.ListJobsRequest{Steps: []string{"x"}}, 0, map[string]int64{}},
	} {
		got := listOfTotals(steps, c.request)
		if got.GetTotal() != c.total || !maps.Equal(got.GetByState(), c.states) {
			t.Errorf("%s: %d, %v", name, got.GetTotal(), got.GetByState())
		}
	}
	for limit, want := range map[int32]int{-1: DefaultJobsListed, 0: DefaultJobsListed, 1: 1, 7: 7} {
		if got := listLimit(&wire.ListJobsRequest{Limit: limit}); got != want {
			t.Errorf("a limit of %d is %d", limit, got)
		}
	}
}

// Jobs that are ready and have no notes of their own are told why there are no pilots.
func TestReadyJobsAreToldWhatTheyWaitFor(t *testing.T) {
	why := []string{"site a is down"}
	jobs := []*wire.JobSummary{{State: "ready"}, {State: "ready", Notes: []string{"own"}}, {State: "running"}}
	noteWaiting(jobs, why)
	if !slices.Equal(jobs[0].GetNotes(), why) || !slices.Equal(jobs[1].GetNotes(), []string{"own"}) ||
		jobs[2].GetNotes() != nil {
		t.Errorf("%v", jobs)
	}
}

// steppedRun is a run that knows its steps.
type steppedRun struct {
	Run
	steps []string
}

func (r steppedRun) Steps() []string { return r.steps }

func TestStepsThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		steps, asked []string
		refused      bool
	}{
		{[]string{"a", "b"}, nil, false}, {[]string{"a", "b"}, []string{"b", "a"}, false},
		{[]string{"a", "b"}, []string{"a", "x"}, true}, {nil, []string{"x"}, false},
	} {
		err := (&view{run: steppedRun{steps: c.steps}}).knowsSteps(c.asked)
		if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), `no step "x"; the steps are a, b`) {
			t.Errorf("%q of %q: %v", c.asked, c.steps, err)
		}
	}
}

// A few of the files are named that a command may stream.
func TestStreamedFilesAreNamed(t *testing.T) {
	reads := []taskqueue.FileView{{File: taskqueue.FileRef{LFN: "linked"}, Access: taskqueue.AccessLink}}
	if got := streamedText(reads); got != "" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct{ name, want string }{
		{"a", " a from"}, {"b", " a, b from"}, {"c", " a, b, c from"}, {"d", " a, b, c, 1 more from"},
		{"e", " a, b, c, 2 more from"},
	} {
		reads = append(reads, taskqueue.FileView{File: taskqueue.FileRef{LFN: c.name}, Access: taskqueue.AccessStream})
		if got := streamedText(reads); !strings.Contains(got, "may stream"+c.want) {
			t.Errorf("%q; want%s", got, c.want)
		}
	}
}
