// Package paper repeats the experiments of paper 3, section V, and checks each
// statement that the paper makes of its figures 6 to 12 on the simulated
// results. What the paper does not give is assumed in the experiment files of
// this folder, each assumption with its reason. A statement that does not hold
// is reported with what was found and why, as far as it is known.
package paper

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strings"

	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/internal/sim/report"
)

//go:embed *.yaml
var paperFiles embed.FS

// paperExperiments are the experiments of paper 3, section V, in the order of
// its figures.
var paperExperiments = []string{"tier0", "submission", "storage", "workflows", "hits"}

// Plans returns the experiments of the paper.
func Plans() ([]*experiment.Plan, error) {
	var plans []*experiment.Plan
	for _, name := range paperExperiments {
		p, err := plan(name)
		if err != nil {
			return nil, err
		}
		p.Within = "paper"
		plans = append(plans, p)
	}
	return plans, nil
}

func plan(name string) (*experiment.Plan, error) {
	file := name + ".yaml"
	data, err := paperFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read an experiment of the paper: %w", err)
	}
	return experiment.Parse(path.Join("paper", file), data)
}

// Hosts returns the experiment with W1, W2 and W3 that can also be run with real pilots,
// on hosts that one machine has room for: bench/cache runs each of its points. It is none
// of [Plans], as the figures of the paper are of a larger set-up.
func Hosts() (*experiment.Plan, error) { return plan("hosts") }

// Run runs the experiments of the paper and checks its claims. Repetitions
// and a seed other than 0 take the place of those in the files.
func Run(ctx context.Context, repetitions int, seed uint64, progress func(done, total int)) ([]report.Chapter, error) {
	plans, err := Plans()
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
	all, err := sim.SweepAll(ctx, plans, progress)
	if err != nil {
		return nil, err
	}
	chapters := make([]report.Chapter, len(all))
	for i, res := range all {
		chapters[i] = report.Chapter{Results: res, Claims: claimsOf[res.Plan.Name](res)}
	}
	return chapters, nil
}

var claimsOf = map[string]func(*sim.Results) []report.Claim{
	"tier0":      tier0Claims,
	"submission": submissionClaims,
	"storage":    storageClaims,
	"workflows":  workflowClaims,
	"hits":       hitClaims,
}

// claim states one claim; why is the reason if it does not hold.
func claim(id, figure, text string, held bool, value, expected, why string) report.Claim {
	c := report.Claim{ID: id, Figure: figure, Claim: text, Held: held, Value: value, Expected: expected}
	if !held {
		c.Reason = why
	}
	return c
}

func tier0Claims(res *sim.Results) []report.Claim {
	without, with := res.Row("prodagent").Value("turnaround_s"), res.Row("pilots").Value("turnaround_s")
	return []report.Claim{byChance(claim(
		"F6", "6", "pilots shorten Tier0's turnaround significantly", with < 0.9*without,
		fmt.Sprintf("%.0f s with pilots, %.0f s without", with, without), "at least 10 % shorter", notGiven,
	), between("turnaround", res.Row("pilots"), res.Row("prodagent"), "turnaround_s"))}
}

func submissionClaims(res *sim.Results) []report.Claim {
	value := func(metric string) (direct, running, monitor float64) {
		return res.Row("direct").Value(metric), res.Row("running").Value(metric), res.Row("monitor").Value(metric)
	}
	dg, rg, mg := value("gap_s")
	ds, rs, ms := value("first_start_s")
	poll := res.Plan.Points[0].Experiment.Creation.Poll.Seconds()
	ask := res.Plan.Points[0].Experiment.Sites[0].Ask.Seconds()
	return []report.Claim{claim(
		"F7a", "7", "no gap between the steps with pilots, a long one with direct submission",
		rg <= poll && mg <= poll && dg > 2*poll && dg > 5*max(rg, mg),
		fmt.Sprintf("nothing runs between first start and last end for %.0f s with running pilots, %.0f s with "+
			"PilotMonitor, %.0f s directly", rg, mg, dg),
		fmt.Sprintf("pilots at most %.0f s (the JobCreator's period), direct more than twice that and five times the pilots'",
			poll), notGiven,
	), claim(
		"F7b", "7", "running pilots start at once, PilotMonitor and direct submission late",
		rs <= ask && ms > ask && ds > ask && ms > 2*rs && ds > 2*rs,
		fmt.Sprintf("first start after %.0f s with running pilots, %.0f s with PilotMonitor, %.0f s directly", rs, ms, ds),
		fmt.Sprintf("running pilots within %.0f s (the period in which they ask), the others later and "+
			"at least twice as late", ask), notGiven,
	)}
}

var conditions = []string{"d1f1", "d2f2", "d3f1", "d3f3"}

func storageClaims(res *sim.Results) []report.Claim {
	at := func(condition, cache, metric string) float64 { return res.Row(condition, cache).Value(metric) }
	stage := func(c string) (without, with float64) {
		return at(c, "none", "stage_in_s"), at(c, "cache", "stage_in_s")
	}
	none3, with3 := stage("d3f3")
	none1, with1 := stage("d1f1")
	var rises, faster []string
	var turnarounds []comparison
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
		turnarounds = append(turnarounds, between(c, res.Row(c, "cache"), res.Row(c, "none"), "turnaround_s"))
	}
	why := fmt.Sprintf("what the cache gains hangs on its hit ratio, which is %.2f for W1 here (see F12)",
		at("d3f3", "cache", "hit_ratio"))
	return []report.Claim{
		claim(
			"F8a", "8", "stage-in with cache far below without at d3f3", with3 < 0.5*none3,
			fmt.Sprintf("%.0f s with, %.0f s without", with3, none3), "less than half", why,
		),
		claim(
			"F8b", "8", "hardly any gain at d1f1", none1-with1 < 0.1*(none3-with3),
			fmt.Sprintf("%.1f s gained at d1f1, %.1f s at d3f3", none1-with1, none3-with3),
			"less than a tenth of the gain at d3f3", why,
		),
		claim(
			"F8c", "8", "little effect of d2f2, d3f1, d3f3 with cache, a strong one without", held8c,
			strings.Join(rises, "; ")+" (above d1f1)", "with cache less than a quarter of the rise without", why,
		),
		readsClaim(res),
		byChance(claim(
			"F9a", "9", "turnaround with cache below without", held9a,
			strings.Join(faster, "; "), "below at every condition", notBelow(res),
		), turnarounds...),
		failuresClaim(res),
		stageOutClaim(res),
	}
}

// stageOutClaim is what section V says of the failures at d3f3: with a cache fewer jobs read the
// SE and fail there, and those that write it fail as before.
func stageOutClaim(res *sim.Results) report.Claim {
	with, without := res.Row("d3f3", "cache"), res.Row("d3f3", "none")
	reading, writing := "failed_reading", "failed_writing"
	return claim(
		"F9c", "9", "the cache reduces failures of stage-in; those of stage-out stay and lengthen the workflow",
		with.Value(reading) < 0.75*without.Value(reading) && with.Value(writing) > 0.75*without.Value(writing),
		fmt.Sprintf("at d3f3 %.1f attempts fail reading with, %.1f without; %.1f writing with, %.1f without",
			with.Value(reading), without.Value(reading), with.Value(writing), without.Value(writing)),
		"reading at least a quarter fewer, writing not a quarter fewer", whenAsked,
	)
}

// readsClaim is F8d: section V has jobs read mostly from the cache.
func readsClaim(res *sim.Results) report.Claim {
	held := true
	var found []string
	for _, c := range conditions {
		with, without := res.Row(c, "cache").Value("read_gb"), res.Row(c, "none").Value("read_gb")
		found = append(found, fmt.Sprintf("%s %.0f GB with, %.0f GB without", c, with, without))
		held = held && with < without
	}
	return claim("F8d", "8", "with a cache less is read from the SE", held, strings.Join(found, "; "),
		"less at every condition", whenAsked)
}

// failuresClaim is F9b, for both approaches as the paper says.
func failuresClaim(res *sim.Results) report.Claim {
	held := true
	var found, why []string
	var decide []comparison
	for _, cache := range []string{"cache", "none"} {
		slow := res.Row("d3f1", cache)
		d3f1 := slow.Value("turnaround_s")
		text := fmt.Sprintf("%s: d3f1 %.0f s", cache, d3f1)
		for _, condition := range []string{"d2f2", "d3f3"} {
			failing := res.Row(condition, cache)
			text += fmt.Sprintf(", %s %.0f s", condition, failing.Value("turnaround_s"))
			decide = append(decide, between(cache+", "+condition, slow, failing, "turnaround_s"))
			if d3f1 >= failing.Value("turnaround_s") {
				held = false
				why = append(why, fmt.Sprintf("%s, %s: %s", cache, condition, apart(slow, failing, "turnaround_s")))
			}
		}
		found = append(found, text)
	}
	return byChance(claim(
		"F9b", "9", "failures weigh more than delays: W1 at d3f1 faster than at d2f2 and d3f3", held,
		strings.Join(found, "; "), "d3f1 below both, with and without cache",
		"it hangs on how long an access is delayed against how long a failed job takes to run again, and the paper gives "+
			"neither; "+strings.Join(why, "; "),
	), decide...)
}

// notGiven is what can be said where only assumptions are left to doubt.
const notGiven = "it hangs on the latencies of submission, which the paper does not give"

func workflowClaims(res *sim.Results) []report.Claim {
	return []report.Claim{
		mostForW1(res, "F10", "10", "job execution", "job_time_s"),
		mostForW1(res, "F11", "11", "turnaround", "turnaround_s"),
		allGain(res),
		globalClaim(res),
	}
}

var workflows = []string{"W1", "W2-shared", "W2-pairs", "W3"}

// allGain is what section V says of figures 10 and 11 together.
func allGain(res *sim.Results) report.Claim {
	held := true
	var found []string
	var decide []comparison
	for _, w := range workflows {
		for _, metric := range []string{"job_time_s", "turnaround_s"} {
			decide = append(decide, between(w+", "+metric, res.Row(w, "cache"), res.Row(w, "none"), metric))
		}
		job := 1 - res.Row(w, "cache").Value("job_time_s")/res.Row(w, "none").Value("job_time_s")
		all := 1 - res.Row(w, "cache").Value("turnaround_s")/res.Row(w, "none").Value("turnaround_s")
		found = append(found, fmt.Sprintf("%s %.1f %% of a job, %.1f %% of the turnaround", w, 100*job, 100*all))
		held = held && job > 0 && all > 0
	}
	return byChance(claim("F11b", "10, 11", "every workflow gains by the cache", held, strings.Join(found, "; "),
		"something of both for each", notGiven), decide...)
}

// globalClaim is what section V expects of pilots that share their data across the nodes of a site.
func globalClaim(res *sim.Results) report.Claim {
	held := true
	var found []string
	for _, w := range workflows[1:] {
		host, global := res.Row(w, "cache").Value("hit_ratio"), res.Row(w, "global").Value("hit_ratio")
		found = append(found, fmt.Sprintf("%s %.2f, not %.2f", w, global, host))
		held = held && global > host
	}
	return claim("F11c", "10, 11", "a global cache raises the hits of W2 and W3", held, strings.Join(found, "; "),
		"above the cache of a host, in both readings of W2", whenAsked)
}

func mostForW1(res *sim.Results, id, figure, what, metric string) report.Claim {
	held := true
	var found []string
	var decide []comparison
	most, sdMost := gain(res, "W1", metric)
	for _, w := range workflows {
		part, sd := gain(res, w, metric)
		found = append(found, fmt.Sprintf("%s %.1f %%", w, 100*part))
		if w != "W1" {
			decide = append(decide, comparison{w, most - part, deviation(len(res.Row(w, "none").Runs), sdMost, sd)})
		}
		held = held && part <= most
	}
	return byChance(claim(id, figure, "W1 gains most: "+what, held, strings.Join(found, ", ")+" saved",
		"the part saved is greatest for W1", whyNotW1(res, metric)), decide...)
}

func abs(v float64) float64 { return max(v, -v) }

// hitClaims are what the paper says of figure 12.
func hitClaims(res *sim.Results) []report.Claim {
	hit := func(w, cache string) float64 { return res.Row(w, cache).Value("hit_ratio") }
	value := func(w string) string {
		return fmt.Sprintf("%s: C1 %.2f, C2 %.2f, C3 %.2f", w, hit(w, "C1"), hit(w, "C2"), hit(w, "C3"))
	}
	twice := value("W2-shared") + "; " + value("W2-pairs")
	both := func(held func(w string) bool) bool { return held("W2-shared") && held("W2-pairs") }
	above := hit("W3", "C1") - hit("W3", "C2")
	return []report.Claim{
		claim("F12a", "12", "C2 = C3 on W1", abs(hit("W1", "C2")-hit("W1", "C3")) <= 0.02, value("W1"), "at most 0.02 apart", whenAsked),
		claim("F12b", "12", "C1 far below C3 on W1", hit("W1", "C1") < 0.5*hit("W1", "C3"), value("W1"), "C1 less than half of C3", whenAsked),
		claim(
			"F12c", "12", "C1 clearly above C2 on W2", both(func(w string) bool { return hit(w, "C1") > hit(w, "C2")+0.1 }),
			twice, "by more than 0.1, in both readings of W2", whyBelow(hit, "W2-shared", "W2-pairs"),
		),
		claim("F12d", "12", "C1 slightly above C2 on W3", above > 0 && above <= 0.1, value("W3"), "by no more than 0.1", whyBelow(hit, "W3")),
		claim(
			"F12e", "12", "single-pilot caches at most one half on W2 and W3", hit("W3", "C2") <= 0.5 &&
				both(func(w string) bool { return hit(w, "C2") <= 0.5 }),
			twice+"; "+value("W3"), "C2 at most 0.5 on W3 and in both readings of W2", whenAsked,
		),
		sharingClaim(hit),
	}
}

// sharingClaim is what the paper says of C1 and C2 where they differ in nothing but who shares a cache:
// both wait for data, and look for it every second.
func sharingClaim(hit func(w, cache string) float64) report.Claim {
	held := true
	var found []string
	for _, w := range workflows[1:] {
		shared, single := hit(w, "C3 looking at once"), hit(w, "C2 looking at once")
		found = append(found, fmt.Sprintf("%s %.2f shared, %.2f not", w, shared, single))
		held = held && shared > single
	}
	return claim("F12f", "12", "a cache of a host finds more than that of a pilot on W2 and W3, if both wait for data "+
		"and look every second", held, strings.Join(found, "; "), "above, in both readings of W2", whenAsked)
}

const whenAsked = "it hangs on when pilots ask and when jobs are created, which the paper does not give"

// whyBelow is why C1 does not come out above C2 as the paper has it: the two
// differ in two things, and what the paper finds is what sharing alone does.
func whyBelow(hit func(w, cache string) float64, works ...string) string {
	text := "C2 waits for data, as section V says of it on W1, and C1 does not; waiting finds more than sharing. Like " +
		"beside like, sharing is above, as the paper has it: "
	for _, w := range works {
		text += fmt.Sprintf("on %s %.2f (C1) and %.2f if neither waits, %.2f (C3) and %.2f (C2) if both do, %.2f (C3) if "+
			"pilots find each other's files within a second; ",
			w, hit(w, "C1"), hit(w, "C2 not waiting"), hit(w, "C3"), hit(w, "C2"), hit(w, "C3 looking at once"))
	}
	return text + "how often they look is not given, here it is once a minute"
}
