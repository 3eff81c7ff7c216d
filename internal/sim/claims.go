package sim

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed paper/*.yaml
var paperFiles embed.FS

// paperExperiments are the experiments of paper 3, section V, in the order of
// its figures.
var paperExperiments = []string{"tier0", "submission", "storage", "workflows", "hits"}

// Claim is a statement of paper 3 about one of its figures, checked on
// simulated results.
type Claim struct {
	ID       string `json:"id"`
	Figure   string `json:"figure"`
	Claim    string `json:"claim"`
	Held     bool   `json:"held"`
	Value    string `json:"value"`    // what was found
	Expected string `json:"expected"` // what makes the claim hold
	Reason   string `json:"reason"`   // why it does not hold, as far as it is known
}

// PaperPlans returns the experiments of the paper.
func PaperPlans() ([]*Plan, error) {
	var plans []*Plan
	for _, name := range paperExperiments {
		file := path.Join("paper", name+".yaml")
		data, err := paperFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read an experiment of the paper: %w", err)
		}
		p, err := Parse(file, data)
		if err != nil {
			return nil, err
		}
		p.Within = "paper"
		plans = append(plans, p)
	}
	return plans, nil
}

// Paper runs the experiments of the paper and checks its claims. Repetitions
// and a seed other than 0 take the place of those in the files.
func Paper(ctx context.Context, repetitions int, seed uint64, progress func(done, total int)) ([]Chapter, error) {
	plans, err := PaperPlans()
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		p.Repeat(repetitions)
		if err := p.Reseed(seed); err != nil {
			return nil, err
		}
	}
	chapters, err := sweepAll(ctx, plans, progress)
	if err != nil {
		return nil, err
	}
	for i, p := range plans {
		chapters[i].Claims = claimsOf[p.Name](chapters[i].Results)
	}
	return chapters, nil
}

// Repeat sets the repetitions of every point, unless n is 0.
func (p *Plan) Repeat(n int) {
	for i := range p.Points {
		if n > 0 {
			p.Points[i].Experiment.Repetitions = n
		}
	}
}

// Reseed sets the seed of every point, unless it is 0. It refuses a plan whose
// points differ in their seeds: they would all become the same.
func (p *Plan) Reseed(seed uint64) error {
	if seed == 0 {
		return nil
	}
	for i := range p.Points {
		if p.Points[i].Experiment.Seed != p.Points[0].Experiment.Seed {
			return fmt.Errorf("%s: its points differ in their seeds, which --seed would make the same: leave --seed out, or give the file one seed", p.File)
		}
	}
	for i := range p.Points {
		p.Points[i].Experiment.Seed = seed
	}
	return nil
}

func (p *Plan) runs() int {
	n := 0
	for _, point := range p.Points {
		n += point.Experiment.Repetitions
	}
	return n
}

var claimsOf = map[string]func(*Results) []Claim{
	"tier0":      tier0Claims,
	"submission": submissionClaims,
	"storage":    storageClaims,
	"workflows":  workflowClaims,
	"hits":       hitClaims,
}

func tier0Claims(res *Results) []Claim {
	without, with := res.find("prodagent").value("turnaround_s"), res.find("pilots").value("turnaround_s")
	return []Claim{{
		ID: "F6", Figure: "6", Claim: "pilots shorten Tier0's turnaround significantly",
		Held:     with < 0.9*without,
		Value:    fmt.Sprintf("%.0f s with pilots, %.0f s without", with, without),
		Expected: "at least 10 % shorter",
		Reason:   ifNot(with < 0.9*without, notGiven),
	}}
}

func submissionClaims(res *Results) []Claim {
	value := func(metric string) (direct, running, monitor float64) {
		return res.find("direct").value(metric), res.find("running").value(metric), res.find("monitor").value(metric)
	}
	dg, rg, mg := value("gap_s")
	ds, rs, ms := value("first_start_s")
	poll := res.Plan.Points[0].Experiment.Creation.Poll.Seconds()
	ask := res.Plan.Points[0].Experiment.Sites[0].Ask.Seconds()
	noGap := rg <= poll && mg <= poll && dg > 2*poll && dg > 5*max(rg, mg)
	atOnce := rs <= ask && ms > ask && ds > ask && ms > 2*rs && ds > 2*rs
	return []Claim{{
		ID: "F7a", Figure: "7", Claim: "no gap between the steps with pilots, a long one with direct submission",
		Held:     noGap,
		Reason:   ifNot(noGap, notGiven),
		Value:    fmt.Sprintf("nothing runs between first start and last end for %.0f s with running pilots, %.0f s with PilotMonitor, %.0f s directly", rg, mg, dg),
		Expected: fmt.Sprintf("pilots at most %.0f s (the JobCreator's period), direct more than twice that and five times the pilots'", poll),
	}, {
		ID: "F7b", Figure: "7", Claim: "running pilots start at once, PilotMonitor and direct submission late",
		Held:     atOnce,
		Reason:   ifNot(atOnce, notGiven),
		Value:    fmt.Sprintf("first start after %.0f s with running pilots, %.0f s with PilotMonitor, %.0f s directly", rs, ms, ds),
		Expected: fmt.Sprintf("running pilots within %.0f s (the period in which they ask), the others later and at least twice as late", ask),
	}}
}

var conditions = []string{"d1f1", "d2f2", "d3f1", "d3f3"}

func storageClaims(res *Results) []Claim {
	at := func(condition, cache, metric string) float64 { return res.find(condition, cache).value(metric) }
	stage := func(c string) (without, with float64) {
		return at(c, "none", "stage_in_s"), at(c, "cache", "stage_in_s")
	}
	none3, with3 := stage("d3f3")
	none1, with1 := stage("d1f1")
	var rises, faster []string
	held8c, held9a := true, true
	for _, c := range conditions {
		none, with := stage(c)
		if c != "d1f1" {
			rises = append(rises, fmt.Sprintf("%s %+.0f s with, %+.0f s without", c, with-with1, none-none1))
			held8c = held8c && with-with1 < 0.25*(none-none1)
		}
		tn, tc := at(c, "none", "turnaround_s"), at(c, "cache", "turnaround_s")
		faster = append(faster, fmt.Sprintf("%s %.0f s with, %.0f s without", c, tc, tn))
		held9a = held9a && tc < tn
	}
	return []Claim{{
		ID: "F8a", Figure: "8", Claim: "stage-in with cache far below without at d3f3",
		Held: with3 < 0.5*none3, Value: fmt.Sprintf("%.0f s with, %.0f s without", with3, none3), Expected: "less than half",
		Reason: ifNot(with3 < 0.5*none3, fewHits(at("d3f3", "cache", "hit_ratio"))),
	}, {
		ID: "F8b", Figure: "8", Claim: "hardly any gain at d1f1",
		Held:     none1-with1 < 0.1*(none3-with3),
		Reason:   ifNot(none1-with1 < 0.1*(none3-with3), fewHits(at("d3f3", "cache", "hit_ratio"))),
		Value:    fmt.Sprintf("%.1f s gained at d1f1, %.1f s at d3f3", none1-with1, none3-with3),
		Expected: "less than a tenth of the gain at d3f3",
	}, {
		ID: "F8c", Figure: "8", Claim: "little effect of d2f2, d3f1, d3f3 with cache, a strong one without",
		Held: held8c, Value: strings.Join(rises, "; ") + " (above d1f1)", Expected: "with cache less than a quarter of the rise without",
		Reason: ifNot(held8c, fewHits(at("d3f3", "cache", "hit_ratio"))),
	}, {
		ID: "F9a", Figure: "9", Claim: "turnaround with cache below without",
		Held: held9a, Value: strings.Join(faster, "; "), Expected: "below at every condition",
		Reason: ifNot(held9a, notBelow(res)),
	}, failuresClaim(res)}
}

// fewHits is why a cache gains little.
func fewHits(ratio float64) string {
	return fmt.Sprintf("what the cache gains hangs on its hit ratio, which is %.2f for W1 here (see F12)", ratio)
}

// failuresClaim is F9b, for both approaches as the paper says.
func failuresClaim(res *Results) Claim {
	c := Claim{
		ID: "F9b", Figure: "9", Claim: "failures weigh more than delays: W1 at d3f1 faster than at d2f2 and d3f3",
		Held: true, Expected: "d3f1 below both, with and without cache",
	}
	var found, why []string
	for _, cache := range []string{"cache", "none"} {
		slow := res.find("d3f1", cache)
		d3f1 := slow.value("turnaround_s")
		text := fmt.Sprintf("%s: d3f1 %.0f s", cache, d3f1)
		for _, condition := range []string{"d2f2", "d3f3"} {
			failing := res.find(condition, cache)
			text += fmt.Sprintf(", %s %.0f s", condition, failing.value("turnaround_s"))
			if d3f1 >= failing.value("turnaround_s") {
				c.Held = false
				why = append(why, fmt.Sprintf("%s, %s: %s", cache, condition, apart(slow, failing, "turnaround_s")))
			}
		}
		found = append(found, text)
	}
	c.Value = strings.Join(found, "; ")
	c.Reason = ifNot(c.Held, "it hangs on how long an access is delayed against how long a failed job takes to run again, and the paper gives neither; "+strings.Join(why, "; "))
	return c
}

// notGiven is what can be said where only assumptions are left to doubt.
const notGiven = "it hangs on the latencies of submission, which the paper does not give"

func ifNot(held bool, reason string) string {
	if held {
		return ""
	}
	return reason
}

func workflowClaims(res *Results) []Claim {
	return []Claim{
		mostForW1(res, "F10", "10", "job execution", "job_time_s"),
		mostForW1(res, "F11", "11", "turnaround", "turnaround_s"),
	}
}

func mostForW1(res *Results, id, figure, what, metric string) Claim {
	c := Claim{ID: id, Figure: figure, Claim: "W1 gains most: " + what, Held: true, Expected: "the part saved is greatest for W1"}
	var found []string
	var first float64
	for _, w := range []string{"W1", "W2-shared", "W2-pairs", "W3"} {
		gain := 1 - res.find(w, "cache").value(metric)/res.find(w, "none").value(metric)
		found = append(found, fmt.Sprintf("%s %.1f %%", w, 100*gain))
		if w == "W1" {
			first = gain
		}
		c.Held = c.Held && gain <= first
	}
	c.Value = strings.Join(found, ", ") + " saved"
	c.Reason = ifNot(c.Held, whyNotW1(res, metric))
	return c
}

func abs(v float64) float64 { return max(v, -v) }
