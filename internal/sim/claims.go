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
		if err := p.Repeat(repetitions); err != nil {
			return nil, err
		}
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
func (p *Plan) Repeat(n int) error {
	if n < 0 || n > MaxRepetitions {
		return fmt.Errorf("%d repetitions: from 1 to %d are possible", n, MaxRepetitions)
	}
	for i := range p.Points {
		if n > 0 {
			p.Points[i].Experiment.Repetitions = n
		}
	}
	return nil
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

// claim states one claim; why is the reason if it does not hold.
func claim(id, figure, text string, held bool, value, expected, why string) Claim {
	c := Claim{ID: id, Figure: figure, Claim: text, Held: held, Value: value, Expected: expected}
	if !held {
		c.Reason = why
	}
	return c
}

func tier0Claims(res *Results) []Claim {
	without, with := res.find("prodagent").value("turnaround_s"), res.find("pilots").value("turnaround_s")
	return []Claim{claim(
		"F6", "6", "pilots shorten Tier0's turnaround significantly", with < 0.9*without,
		fmt.Sprintf("%.0f s with pilots, %.0f s without", with, without), "at least 10 % shorter", notGiven,
	)}
}

func submissionClaims(res *Results) []Claim {
	value := func(metric string) (direct, running, monitor float64) {
		return res.find("direct").value(metric), res.find("running").value(metric), res.find("monitor").value(metric)
	}
	dg, rg, mg := value("gap_s")
	ds, rs, ms := value("first_start_s")
	poll := res.Plan.Points[0].Experiment.Creation.Poll.Seconds()
	ask := res.Plan.Points[0].Experiment.Sites[0].Ask.Seconds()
	return []Claim{claim(
		"F7a", "7", "no gap between the steps with pilots, a long one with direct submission",
		rg <= poll && mg <= poll && dg > 2*poll && dg > 5*max(rg, mg),
		fmt.Sprintf("nothing runs between first start and last end for %.0f s with running pilots, %.0f s with PilotMonitor, %.0f s directly", rg, mg, dg),
		fmt.Sprintf("pilots at most %.0f s (the JobCreator's period), direct more than twice that and five times the pilots'", poll), notGiven,
	), claim(
		"F7b", "7", "running pilots start at once, PilotMonitor and direct submission late",
		rs <= ask && ms > ask && ds > ask && ms > 2*rs && ds > 2*rs,
		fmt.Sprintf("first start after %.0f s with running pilots, %.0f s with PilotMonitor, %.0f s directly", rs, ms, ds),
		fmt.Sprintf("running pilots within %.0f s (the period in which they ask), the others later and at least twice as late", ask), notGiven,
	)}
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
	why := fewHits(at("d3f3", "cache", "hit_ratio"))
	return []Claim{
		claim(
			"F8a", "8", "stage-in with cache far below without at d3f3", with3 < 0.5*none3,
			fmt.Sprintf("%.0f s with, %.0f s without", with3, none3), "less than half", why,
		),
		claim(
			"F8b", "8", "hardly any gain at d1f1", none1-with1 < 0.1*(none3-with3),
			fmt.Sprintf("%.1f s gained at d1f1, %.1f s at d3f3", none1-with1, none3-with3), "less than a tenth of the gain at d3f3", why,
		),
		claim(
			"F8c", "8", "little effect of d2f2, d3f1, d3f3 with cache, a strong one without", held8c,
			strings.Join(rises, "; ")+" (above d1f1)", "with cache less than a quarter of the rise without", why,
		),
		claim(
			"F9a", "9", "turnaround with cache below without", held9a,
			strings.Join(faster, "; "), "below at every condition", notBelow(res),
		),
		failuresClaim(res),
	}
}

// fewHits is why a cache gains little.
func fewHits(ratio float64) string {
	return fmt.Sprintf("what the cache gains hangs on its hit ratio, which is %.2f for W1 here (see F12)", ratio)
}

// failuresClaim is F9b, for both approaches as the paper says.
func failuresClaim(res *Results) Claim {
	held := true
	var found, why []string
	for _, cache := range []string{"cache", "none"} {
		slow := res.find("d3f1", cache)
		d3f1 := slow.value("turnaround_s")
		text := fmt.Sprintf("%s: d3f1 %.0f s", cache, d3f1)
		for _, condition := range []string{"d2f2", "d3f3"} {
			failing := res.find(condition, cache)
			text += fmt.Sprintf(", %s %.0f s", condition, failing.value("turnaround_s"))
			if d3f1 >= failing.value("turnaround_s") {
				held = false
				why = append(why, fmt.Sprintf("%s, %s: %s", cache, condition, apart(slow, failing, "turnaround_s")))
			}
		}
		found = append(found, text)
	}
	return claim(
		"F9b", "9", "failures weigh more than delays: W1 at d3f1 faster than at d2f2 and d3f3", held, strings.Join(found, "; "), "d3f1 below both, with and without cache",
		"it hangs on how long an access is delayed against how long a failed job takes to run again, and the paper gives neither; "+strings.Join(why, "; "),
	)
}

// notGiven is what can be said where only assumptions are left to doubt.
const notGiven = "it hangs on the latencies of submission, which the paper does not give"

func workflowClaims(res *Results) []Claim {
	return []Claim{
		mostForW1(res, "F10", "10", "job execution", "job_time_s"),
		mostForW1(res, "F11", "11", "turnaround", "turnaround_s"),
	}
}

func mostForW1(res *Results, id, figure, what, metric string) Claim {
	held := true
	var found []string
	var first float64
	for _, w := range []string{"W1", "W2-shared", "W2-pairs", "W3"} {
		gain := 1 - res.find(w, "cache").value(metric)/res.find(w, "none").value(metric)
		found = append(found, fmt.Sprintf("%s %.1f %%", w, 100*gain))
		if w == "W1" {
			first = gain
		}
		held = held && gain <= first
	}
	return claim(id, figure, "W1 gains most: "+what, held, strings.Join(found, ", ")+" saved", "the part saved is greatest for W1", whyNotW1(res, metric))
}

func abs(v float64) float64 { return max(v, -v) }
