package paper

import (
	"context"
	"strings"
	"testing"

	"fairway/internal/sim"
)

// Every figure of the paper leads to its claims, in their order, and a claim
// that does not hold says why.
func TestPaperChecksItsClaims(t *testing.T) {
	chapters, err := Run(context.Background(), 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range chapters {
		for _, claim := range c.Claims {
			ids = append(ids, claim.ID)
			if !claim.Held && claim.Reason == "" || claim.Value == "" || claim.Expected == "" {
				t.Errorf("%+v", claim)
			}
		}
	}
	want := "F6 F7a F7b F8a F8b F8c F8d F9a F9b F9c F10 F11 F11b F11c F12a F12b F12c F12d F12e F12f"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("claims %s, not %s", got, want)
	}
}

// A run that goes wrong says what command repeats it; the plans of sim paper
// are in no file of the user.
func TestFailedRunOfThePaperCanBeRepeated(t *testing.T) {
	plans, err := Plans()
	if err != nil {
		t.Fatal(err)
	}
	plan := plans[0]
	plan.Points = plan.Points[:1]
	plan.Repeat(1)
	plan.Points[0].Experiment.Limit = 1
	plan.Points[0].Experiment.Seed = 4
	if _, err = sim.Sweep(context.Background(), plan, nil); err == nil ||
		!strings.Contains(err.Error(), "(fairway sim --seed 4 paper)") {
		t.Errorf("got %v", err)
	}
}
