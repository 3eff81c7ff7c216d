package dispatch

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/dispatch/estimate"
	"fairway/internal/taskqueue"
)

// The first attempt of a pilot ends now, if it takes longer than those before, and whatever is behind it.
func TestFirstEndOfAPilot(t *testing.T) {
	long, short, unknown := &step{run: new(run)}, &step{run: new(run)}, &step{run: new(run)}
	long.Step, short.Step, unknown.Step = "long", "short", "unknown"
	fl := &fleet{pace: pace{Runs: estimate.NewRuns[*step, stepName]()}}
	fl.pace.Ended(long, time.Minute)
	fl.pace.Ended(short, time.Second)
	own := &job{step: short}
	pl := &placement{fleet: fl, transition: &transition{now: instant(time.Hour)}}
	began := func(s *step, ago time.Duration) *attempt {
		return &attempt{job: &job{step: s}, started: true, since: pl.now.After(-ago)}
	}
	for name, c := range map[string]struct {
		attempts []*attempt
		want     time.Duration
		known    bool
	}{
		"none":                {nil, -1, false},
		"one":                 {[]*attempt{began(long, 10*time.Second)}, 50 * time.Second, true},
		"the first of two":    {[]*attempt{began(long, 0), began(short, 0)}, time.Second, true},
		"one that is late":    {[]*attempt{began(short, time.Minute), began(long, 0)}, 0, true},
		"one that nobody can": {[]*attempt{began(long, 0), began(unknown, 0)}, 0, false},
		"one not started":     {[]*attempt{{job: &job{step: long}}}, 0, false},
		"one beyond its room": {[]*attempt{{job: &job{step: long}, started: true, ahead: true}}, 0, false},
		"the job's own":       {[]*attempt{{job: own, started: true}, began(long, 0)}, time.Minute, true},
	} {
		q := &pilot{attempts: c.attempts}
		if got, known := pl.firstEnd(q, own); got != c.want || known != c.known {
			t.Errorf("%s: %v, %t", name, got, known)
		}
	}
}

// What comes in no time tells how fast bytes come, and what was read from nowhere tells nothing.
func TestInputsThatComeInNoTime(t *testing.T) {
	for name, c := range map[string]struct {
		took  time.Duration
		bytes int64
		known bool
	}{
		"in no time": {0, 5, true}, "in a second": {time.Second, 5, true}, "nothing": {time.Second, 0, false},
		"before it began": {-time.Second, 5, false},
	} {
		fl, began := new(fleet), time.Unix(1000, 0)
		u := &taskqueue.Usage{StageInStart: began, Start: began.Add(c.took), BytesStaged: c.bytes}
		fl.learnOfSite(new(site), new(job), u, 0)
		if fl.transfers.near.IsKnown() != c.known || fl.transfers.far.IsKnown() || fl.transfers.run.IsKnown() {
			t.Errorf("%s: %+v", name, fl.transfers)
		}
	}
}

// Where a commit tells how contents are checked, two hashes contradict each other; elsewhere the first counts.
func TestHashesThatContradict(t *testing.T) {
	for name, c := range map[string]struct {
		proof    uint32
		timed    bool
		by, hash string // of the second
		want     string
	}{
		"another hash":           {7, false, "b", "bb", ""},
		"without a proof":        {0, false, "b", "bb", "aa"},
		"with a proof of a time": {7, true, "b", "bb", "aa"},
		"the same hash":          {7, false, "b", "aa", "aa"},
		"of the same pilot":      {7, false, "a", "bb", "aa"},
	} {
		fs := &files{hashes: map[*version]string{}, tellers: map[*version]taskqueue.PilotID{}}
		fl := &fleet{files: fs}
		v := &version{writer: new(job), proof: c.proof, timed: c.timed}
		fl.hashTold(&pilot{id: "a"}, v, "aa")
		fl.hashTold(&pilot{id: taskqueue.PilotID(c.by)}, v, c.hash)
		if got := fs.hash(v).text(); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// A step has stored what its jobs have stored to stay.
func TestStoredBytesOfAStep(t *testing.T) {
	j := &job{step: new(step), outputs: []taskqueue.Output{{LFN: "kept"}, {LFN: "cached"}, {LFN: "gone", Temporary: true}}}
	j.countStored([]output{
		{LFN: "kept", PFN: "/kept", Size: 5}, {LFN: "cached", Size: 70}, {LFN: "gone", PFN: "/gone", Size: 900},
	})
	if j.step.storedBytes != 5 {
		t.Errorf("%d bytes are stored", j.step.storedBytes)
	}
}

func TestOutputsThatAreReportedTwice(t *testing.T) {
	r := &taskqueue.Result{}
	for _, lfn := range []string{"a", "b", "a"} {
		r.Outputs = append(r.Outputs, taskqueue.WrittenFile{LFN: lfn, PFN: "/" + lfn})
	}
	j := &job{outputs: []taskqueue.Output{{LFN: "a"}, {LFN: "b"}}}
	if got := new(files).checkOutputs(j, r); got != "output a is reported twice" {
		t.Errorf("%q", got)
	}
	r.Outputs = slices.Clip(r.Outputs[:2])
	if got := new(files).checkOutputs(j, r); got != "" {
		t.Errorf("each once: %q", got)
	}
}
