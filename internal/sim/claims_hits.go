package sim

import "fmt"

// hitClaims are what the paper says of figure 12.
func hitClaims(res *Results) []Claim {
	hit := func(w, cache string) float64 { return res.find(w, cache).value("hit_ratio") }
	value := func(w string) string {
		return fmt.Sprintf("%s: C1 %.2f, C2 %.2f, C3 %.2f", w, hit(w, "C1"), hit(w, "C2"), hit(w, "C3"))
	}
	twice := value("W2-shared") + "; " + value("W2-pairs")
	both := func(held func(w string) bool) bool { return held("W2-shared") && held("W2-pairs") }
	above := hit("W3", "C1") - hit("W3", "C2")
	return []Claim{
		claim("F12a", "12", "C2 = C3 on W1", abs(hit("W1", "C2")-hit("W1", "C3")) <= 0.02, value("W1"), "at most 0.02 apart", whenAsked),
		claim("F12b", "12", "C1 far below C3 on W1", hit("W1", "C1") < 0.5*hit("W1", "C3"), value("W1"), "C1 less than half of C3", whenAsked),
		claim(
			"F12c", "12", "C1 clearly above C2 on W2", both(func(w string) bool { return hit(w, "C1") > hit(w, "C2")+0.1 }),
			twice, "by more than 0.1, in both readings of W2", whyBelow(hit, "W2-shared", "W2-pairs"),
		),
		claim("F12d", "12", "C1 slightly above C2 on W3", above > 0 && above <= 0.1, value("W3"), "by no more than 0.1", whyBelow(hit, "W3")),
		claim(
			"F12e", "12", "single-pilot caches at most one half on W2 and W3", hit("W3", "C2") <= 0.5 && both(func(w string) bool { return hit(w, "C2") <= 0.5 }),
			twice+"; "+value("W3"), "C2 at most 0.5 on W3 and in both readings of W2", whenAsked,
		),
	}
}

const whenAsked = "it hangs on when pilots ask and when jobs are created, which the paper does not give"

// whyBelow is why C1 does not come out above C2 as the paper has it: the two
// differ in two things, and what the paper finds is what sharing alone does.
func whyBelow(hit func(w, cache string) float64, works ...string) string {
	text := "C2 waits for data, as section V says of it on W1, and C1 does not; waiting finds more than sharing. Like beside like, sharing is above, as the paper has it: "
	for _, w := range works {
		text += fmt.Sprintf("on %s %.2f (C1) and %.2f if neither waits, %.2f (C3) and %.2f (C2) if both do, %.2f (C3) if pilots find each other's files within a second; ",
			w, hit(w, "C1"), hit(w, "C2 not waiting"), hit(w, "C3"), hit(w, "C2"), hit(w, "C3 looking at once"))
	}
	return text + "how often they look is not given, here it is once a minute"
}
