package pilot

import (
	"testing"

	"fairway/internal/wire"
)

// A number that is cut at the bound of the report would be another number.
func TestReportsThatDoNotHoldAreErrors(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	for report, want := range map[string]string{
		`yes records x 12345678 | head -c 16777217`: "it is longer than 16777216 bytes",
		`echo "records y 3"`:                        "y is none of the outputs",
	} {
		r := q.run("p1", shell("touch x; "+report+` > "$FAIRWAY_REPORT"`, writes("x")))
		expect(t, r, wire.Outcome_OUTCOME_STAGE_OUT_FAILED, want)
	}
	r := q.run("p1", shell(`touch x; printf 'records ./x 0020' > "$FAIRWAY_REPORT"`, writes("x")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if n := r.GetOutputs()[0].GetRecords(); n != 20 {
		t.Errorf("%d records", n)
	}
}
