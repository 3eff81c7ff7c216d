package sim

import (
	"testing"
	"time"

	"fairway/internal/sim/experiment"
)

// Where inputs are staged in, each try of a job meets the delays that Accesses gives for its
// inputs, one after the other, as bench/cache draws them; and the job computes afterwards.
func TestStagedInputsMeetTheirOwnAccesses(t *testing.T) {
	plan, err := experiment.Parse("x.yaml", []byte(`experiment: staged
workflow: {pattern: W3, jobs: 2, file_size: 10MB, run: 10s, accesses: 5}
sites: [{name: here, nodes: 2, slots: 1, started: 2, stage_in: true}]
storage: [{name: se, delay_factor: 0.5, delay_spread: 0.25, delay_each: true}]
cache: {share: none}
`))
	if err != nil {
		t.Fatal(err)
	}
	exp := &plan.Points[0].Experiment
	_, r := jobNames(t, plan)
	var want time.Duration
	for input := range 2 {
		reading, _ := Accesses(r.seed, "step1-000", 1)
		for range input + 1 {
			reading.Float64()
			reading.IntN(5)
		}
		for range 5 {
			want += exp.Storage[0].Delay(reading, 10*time.Second, 5)
		}
	}
	if r.stageIn != want {
		t.Errorf("%v of stage-in, want %v", r.stageIn, want)
	}
}
