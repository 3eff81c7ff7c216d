package paper

import (
	"context"
	"os"
	"strings"
	"testing"

	"fairway/internal/sim"
	"fairway/internal/sim/report"
)

// Every figure of the paper leads to its claims, in their order. Which hold is written here, but for
// those that chance decides in so few runs, and these say so. A claim that does not hold says why.
func TestPaperChecksItsClaims(t *testing.T) {
	runs := 1
	if os.Getenv("FAIRWAY_SOAK") != "" {
		runs = 20
	}
	chapters, err := Run(context.Background(), runs, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		id   string
		held bool
		luck bool // chance may decide it
	}{
		{"F6", true, false}, {"F7a", true, false}, {"F7b", true, false},
		{"F8a", true, false}, {"F8b", true, false}, {"F8c", true, false}, {"F8d", true, false},
		{"F9a", true, true}, {"F9b", true, true}, {"F9c", true, false},
		{"F10", true, true}, {"F11", true, true}, {"F11b", true, true}, {"F11c", true, false},
		{"F12a", true, false}, {"F12b", true, false}, {"F12c", false, false}, {"F12d", false, false},
		{"F12e", true, false}, {"F12f", true, false},
	}
	i := 0
	for _, c := range chapters {
		for _, claim := range c.Claims {
			if i == len(want) || claim.ID != want[i].id {
				t.Fatalf("claim %d is %s", i, claim.ID)
			}
			luck := want[i].luck && claim.Chance != ""
			if claim.Held != want[i].held && !luck || claim.Chance != "" && !want[i].luck && runs > 1 {
				t.Errorf("%s: held %v, chance %q", claim.ID, claim.Held, claim.Chance)
			}
			if !claim.Held && claim.Reason == "" || claim.Value == "" || claim.Expected == "" {
				t.Errorf("%+v", claim)
			}
			i++
		}
	}
	if i < len(want) {
		t.Errorf("no claim %s", want[i].id)
	}
}

// A difference that runs of the same kind show too is told, whatever comes of it, and one run tells
// of none.
func TestClaimsTellWhatChanceCouldMake(t *testing.T) {
	for _, c := range []struct {
		apart, sd float64
		runs      int
		told      bool
	}{{10, 10, 4, true}, {20, 10, 4, false}, {-20, 10, 4, false}, {20, 0, 1, true}} {
		got := byChance(report.Claim{Held: true}, comparison{"a", c.apart, deviation(c.runs, c.sd, c.sd)})
		if got.Chance != "" != c.told {
			t.Errorf("%+v: %q", c, got.Chance)
		}
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
