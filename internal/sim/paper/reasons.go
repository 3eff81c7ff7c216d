package paper

import (
	"fmt"
	"math"
	"strings"

	"fairway/internal/sim"
)

// apart says how far two points are apart, and how far by chance alone: twice
// the standard error of the difference of their means.
func apart(a, b *sim.Row, metric string) string {
	x, sdX := a.Of(metric)
	y, sdY := b.Of(metric)
	text := fmt.Sprintf("%.0f s apart", abs(x-y))
	if len(a.Runs) < 2 {
		return text + " in one run"
	}
	byChance := 2 * math.Sqrt((sdX*sdX+sdY*sdY)/float64(len(a.Runs)))
	if abs(x-y) < byChance {
		return fmt.Sprintf("%s, which is within chance (twice the standard error of %d runs is %.0f s)", text,
			len(a.Runs), byChance)
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
