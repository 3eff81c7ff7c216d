package history

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/lib/seed"
)

var begin = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

// attempt stages for a second before and after it computes.
func attempt(pilot string, from, to float64) Attempt {
	return Attempt{
		Pilot: pilot, Host: "h", Outcome: "succeeded", StageIn: at(from), Start: at(from + 1), End: at(to - 1),
		StageOut: at(to),
	}
}

// Two jobs of one pilot, and one that reads what the second writes, on a pilot that came late.
func TestPathOfASmallRun(t *testing.T) {
	run := &Run{Jobs: []Job{
		{ID: 1, Name: "a", Step: "s", Submitted: at(0), Attempts: []Attempt{attempt("p", 2, 10)}},
		{ID: 2, Name: "b", Step: "s", Submitted: at(0), Attempts: []Attempt{attempt("p", 10, 20)}},
		{ID: 3, Name: "c", Step: "t", Submitted: at(0), After: []uint32{1, 2}, Attempts: []Attempt{
			{Pilot: "q", Host: "h", Failed: true, StageIn: at(25), Start: at(25), End: at(27), StageOut: at(27)},
			attempt("q", 30, 40),
		}},
	}}
	why := run.Explain()
	var names []string
	for _, j := range why.Path {
		names = append(names, j.Name)
	}
	if got := strings.Join(names, " "); got != "b c" {
		t.Errorf("the path is %s", got)
	}
	for cause, want := range map[Cause]float64{
		NoSlot: 10, Computing: 8 + 8, Staging: 2 + 2, Retrying: 5, NoPilot: 5, Making: 0,
	} {
		if got := why.Times[cause].Seconds(); got != want {
			t.Errorf("%s: %v s, not %v", cause, got, want)
		}
	}
	// The next job of a slot is staged ahead, and the outputs of the one before are stored, while it is taken.
	ahead := &Run{Jobs: []Job{
		{ID: 1, Name: "a", Submitted: at(0), Attempts: []Attempt{
			{Pilot: "p", StageIn: at(0), Start: at(2), End: at(10), StageOut: at(14)},
		}},
		{ID: 2, Name: "b", Submitted: at(0), Attempts: []Attempt{
			{Pilot: "p", StageIn: at(1), Start: at(10), End: at(18), StageOut: at(20)},
		}},
		{ID: 3, Name: "c", Submitted: at(0), Attempts: []Attempt{{Pilot: "p", StageIn: at(1), End: at(9)}}}, // staging failed
	}}
	if why := ahead.Explain(); why.Most != 1 || why.Slots != 16.0/20 {
		t.Errorf("%d side by side of one slot, %v on average", why.Most, why.Slots)
	}
	if why.Most != 1 || why.Work != 30*time.Second {
		t.Errorf("%d side by side, work %v", why.Most, why.Work)
	}
}

func randomRun(random *rand.Rand) *Run {
	run := &Run{Workflow: "w", State: "It has succeeded"}
	ends := map[uint32]float64{}
	free := make([]float64, 1+random.IntN(4))
	for id := uint32(1); id <= uint32(1+random.IntN(60)); id++ {
		j := Job{ID: id, Name: "job<" + string(rune('a'+id%26)) + ">", Step: string(rune('x' + id%3)), State: "done"}
		ready := random.Float64() * 20
		j.Submitted = at(ready)
		for range random.IntN(3) {
			if before := uint32(random.IntN(int(id))); before > 0 {
				j.After = append(j.After, before)
				ready = max(ready, ends[before])
			}
		}
		slot := random.IntN(len(free))
		for tries := 1 + random.IntN(2); tries > 0; tries-- {
			from := max(ready, free[slot]) + random.Float64()
			to := from + 2 + random.Float64()*10
			a := attempt(string(rune('p'+slot)), from, to)
			a.Failed = tries > 1
			j.Attempts = append(j.Attempts, a)
			free[slot], ready = to, to
		}
		ends[id] = ready
		run.Jobs = append(run.Jobs, j)
	}
	return run
}

// The parts of a path fill the time of a run, one after the other.
func TestPartsFillTheTime(t *testing.T) {
	random := seed.Source(t)
	for range 300 {
		run := randomRun(random)
		why := run.Explain()
		now := why.Begin
		for _, p := range why.Parts {
			if !p.From.Equal(now) || !p.To.After(p.From) {
				t.Fatalf("a part goes from %v to %v, and the one before ends at %v", p.From, p.To, now)
			}
			now = p.To
		}
		if !now.Equal(why.End) {
			t.Fatalf("the parts end at %v, the run at %v", now, why.End)
		}
	}
}

// What is written can be read, whatever jobs are called.
func TestReportAndTrace(t *testing.T) {
	random := seed.Source(t)
	for range 20 {
		run := randomRun(random)
		run.Jobs[0].State, run.Jobs[0].Reason = "failed", "<script>alert(1)</script>"
		var page, trace bytes.Buffer
		if err := run.Report(&page, About{Version: "1"}); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"<script", "http:", "https:"} {
			if strings.Contains(page.String(), other) {
				t.Errorf("the page has %s", other)
			}
		}
		if err := run.Perfetto(&trace); err != nil {
			t.Fatal(err)
		}
		var read struct {
			Events []struct {
				Phase string `json:"ph"`
				Name  string `json:"name"`
				Time  int64  `json:"ts"`
				Span  int64  `json:"dur"`
				Line  int    `json:"tid"`
			} `json:"traceEvents"`
		}
		if err := json.Unmarshal(trace.Bytes(), &read); err != nil {
			t.Fatal(err)
		}
		computed := 0
		for _, e := range read.Events {
			if e.Name == "compute" {
				computed++
			}
			if e.Phase == "X" && (e.Time < 0 || e.Span < 0 || e.Line == 0) {
				t.Errorf("%+v", e)
			}
		}
		attempts := 0
		for i := range run.Jobs {
			attempts += len(run.Jobs[i].Attempts)
		}
		if computed != attempts {
			t.Errorf("%d of %d attempts", computed, attempts)
		}
	}
}

func TestNothingWasExecuted(t *testing.T) {
	run := &Run{Jobs: []Job{{ID: 1, State: "failed"}}}
	if why := run.Explain(); why != nil {
		t.Error(why)
	}
	if err := run.Report(new(bytes.Buffer), About{}); err != nil {
		t.Error(err)
	}
}
