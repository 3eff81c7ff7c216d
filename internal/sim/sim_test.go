package sim

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"fairway/internal/sim/experiment"
	"fairway/lib/seed"
)

func mustParse(t testing.TB, text string) *experiment.Plan {
	t.Helper()
	p, err := experiment.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// resultsOf is all that comes of a plan, as text; without seeds if they are not
// to be compared.
func resultsOf(t *testing.T, p *experiment.Plan, seeds bool) string {
	t.Helper()
	res, err := Sweep(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range res.Rows {
		for i := range row.Runs {
			if !seeds {
				row.Runs[i].Seed = 0
			}
		}
	}
	text, err := json.MarshalIndent(res.Rows, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const small = `experiment: small
workflow: {pattern: W1, file_size: 1MB, run: 10s}
sites:
  - {name: here, nodes: 2, slots: 2, started: 4}
storage:
  - {name: se}
`

// sweeps are experiments of every kind of source of jobs, with everything that
// draws random numbers.
func sweeps(t *testing.T) map[string]func() *experiment.Plan {
	faulty := "faults: {lost: 0.02, repeated: 0.02, pilot_dies: {mean: 10m, sd: 5m}, pilot_deaths: 20, server_dies: " +
		"{mean: 5m, sd: 1m}, server_away: 1m, crashes: 3, write_fails: 0.01}\n"
	return map[string]func() *experiment.Plan{
		"pattern": func() *experiment.Plan {
			text := strings.Replace(small, "run: 10s", "run: {mean: 10s, sd: 1s}", 1)
			return mustParse(t, text+"repetitions: 3\ncache: {size: 5MB, share: {sweep: [pilot, host]}}\n")
		},
		"faults": func() *experiment.Plan {
			return mustParse(t, small+"repetitions: 3\nsubmission: monitor\n"+faulty+"cache: {size: 5MB, share: {sweep: "+
				"[pilot, global]}}\n")
		},
		"workflow file": func() *experiment.Plan {
			p,
				err := fileExperiment(t, everyRuleExperiment+"repetitions: 2\n"+faulty+"submission: {sweep: [running, monitor]}\n")
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
	}
}

// The bytes that come out depend on experiment and seed alone, not on the
// number of processors, and so not on which runs are side by side.
func TestSameSeedSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, plan := range sweeps(t) {
		runtime.GOMAXPROCS(1)
		alone := resultsOf(t, plan(), true)
		for _, processors := range []int{2, 4} {
			runtime.GOMAXPROCS(processors)
			if beside := resultsOf(t, plan(), true); beside != alone {
				t.Errorf("%s: on one processor:\n%s\non %d:\n%s", name, alone, processors, beside)
			}
		}
		other := plan()
		if err := other.Reseed(seed.Of(t) | 2); err != nil {
			t.Fatal(err)
		}
		if resultsOf(t, other, false) == resultsOf(t, plan(), false) {
			t.Errorf("%s: another seed gave the same run", name)
		}
	}
}
