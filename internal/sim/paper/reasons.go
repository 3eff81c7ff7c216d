package paper

import (
	"fmt"
	"math"
	"strings"

	"fairway/internal/sim"
	"fairway/internal/sim/report"
)

// comparison is a difference that decides a claim, and twice its standard error: chance alone makes
// one above that in 5 of 100 cases. With one run that is not known, and NaN.
type comparison struct {
	of              string
	apart, byChance float64
}

func (c comparison) within() bool { return !(abs(c.apart) >= c.byChance) }

// between compares the means of two points.
func between(of string, a, b *sim.Row, metric string) comparison {
	x, sdX := a.Of(metric)
	y, sdY := b.Of(metric)
	return comparison{of, x - y, deviation(len(a.Runs), sdX, sdY)}
}

// deviation is twice the standard error of a sum or difference of means.
func deviation(runs int, sds ...float64) float64 {
	if runs < 2 {
		return math.NaN()
	}
	sum := 0.0
	for _, sd := range sds {
		sum += sd * sd
	}
	return 2 * math.Sqrt(sum/float64(runs))
}

// gain is by which part a cache shortens something, and the standard deviation of that from one
// run to the next.
func gain(res *sim.Results, work, metric string) (part, sd float64) {
	with, sdWith := res.Row(work, "cache").Of(metric)
	without, sdWithout := res.Row(work, "none").Of(metric)
	return 1 - with/without, math.Hypot(sdWith, sdWithout*with/without) / without
}

// byChance has a claim say which of the differences that decide it chance alone could make, whether
// it holds or not.
func byChance(c report.Claim, decide ...comparison) report.Claim {
	var within []string
	for _, d := range decide {
		switch {
		case math.IsNaN(d.byChance):
			within = append(within, d.of+" (one run does not tell)")
		case d.within():
			within = append(within, fmt.Sprintf("%s (%.3g apart, %.3g by chance)", d.of, abs(d.apart), d.byChance))
		}
	}
	c.Chance = strings.Join(within, "; ")
	return c
}

// apart says how far two points are apart, and how far by chance alone.
func apart(a, b *sim.Row, metric string) string {
	d := between("", a, b, metric)
	text := fmt.Sprintf("%.0f s apart", abs(d.apart))
	switch {
	case len(a.Runs) < 2:
		return text + " in one run"
	case d.within():
		return fmt.Sprintf("%s, which is within chance (twice the standard error of %d runs is %.0f s)", text,
			len(a.Runs), d.byChance)
	}
	return text
}

// notBelow is why turnaround with a cache is not below that without.
func notBelow(res *sim.Results) string {
	var why []string
	for _, c := range conditions {
		with, without := res.Row(c, "cache"), res.Row(c, "none")
		if with.Value("turnaround_s") >= without.Value("turnaround_s") {
			why = append(why, fmt.Sprintf("at %s they are %s; %.0f attempts fail with it and %.0f without",
				c, apart(with, without, "turnaround_s"), with.Value("failed_attempts"), without.Value("failed_attempts")))
		}
	}
	return strings.Join(why, "; ") + ". Turnaround is that of the slowest of 80 chains of jobs, and each failure in it " +
		"makes a job run again, with a cache or without; a cache does not keep writing from failing"
}

// whyNotW1 is why another workflow gains more than W1.
func whyNotW1(res *sim.Results, metric string) string {
	saved := func(w string) float64 {
		return 100 * (1 - res.Row(w, "cache").Value(metric)/res.Row(w, "none").Value(metric))
	}
	read := func(w, cache string) float64 { return res.Row(w, cache).Value("stage_in_s") }
	return fmt.Sprintf("a second job of W3 reads two files and one of W1 reads one, so that W3 has more to lose to the "+
		"SE: a job spends %.0f s there without a cache and %.0f s with it, of W1 %.0f s and %.0f s. W1 with and without a "+
		"cache is %s, W3 %s. If the delay is that of all files together that a job reads, W3 saves %.1f %%, W1 %.1f %%",
		read("W3", "none"), read("W3", "cache"), read("W1", "none"), read("W1", "cache"),
		apart(res.Row("W1", "cache"), res.Row("W1", "none"), metric),
		apart(res.Row("W3", "cache"), res.Row("W3", "none"), metric), saved(onceDelayed), saved("W1"))
}

// onceDelayed is the other reading of what the delay factor is a delay of.
const onceDelayed = "W3 delayed once"
