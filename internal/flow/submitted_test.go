package flow

import (
	"slices"
	"testing"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// A worker starts with what is set for all jobs of a step alike, and not with what each has of its own.
func TestWorkersHaveWhatAllJobsHave(t *testing.T) {
	w, err := workflow.Parse("w.yaml", []byte(`workflow: w
parameters: {LEVEL: 3, OTHER: 4}
variables: [TZ=Asia/Tokyo]
steps:
  a: {times: 2, writes: "t/{number}", worker: python json, variables: [TAKEN, A=b], command: "echo $LEVEL > $out"}
  b: {times: 2, writes: "u/{number}", variables: [A=b], command: "echo $LEVEL > $out"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[int][]string{0: {"A", "LEVEL", "TAKEN", "TZ"}, 1: nil} {
		c := &commandSource{w: w, step: w.Steps[step], values: pattern.Binding{"number": "1"}, writes: []string{"t/1"}}
		if got := c.command(c.step.Runs.Command).Decisive; !slices.Equal(got, want) {
			t.Errorf("step %d: %v", step, got)
		}
	}
	command := workflow.Command{Argv: []string{"true"}, Worker: "python", Environment: map[string]string{"X": "1"}}
	made, err := workflow.Submitted(taskqueue.Job{Name: "j", Writes: []taskqueue.Output{{LFN: "o"}}}, command)
	if err != nil || !slices.Equal(made.Command.Decisive, []string{"X"}) {
		t.Error(made.Command.Decisive, err)
	}
}
