package pilot

import (
	"strings"
	"testing"

	"fairway/internal/wire"
)

func TestReportsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]int64{
		"records x 0020":                20,
		"records x 7\n\nrecords x 7":    7,
		"records x 9223372036854775807": 1<<63 - 1,
	} {
		if got, err := parseReport([]byte(text)); err != nil || got["x"] != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"records x 9223372036854775808": "too large",
		"records x +7":                  "no number",
		"records x -1":                  "no number",
		"records x 1e3":                 "no number",
		"records x":                     "not of the form",
		"record x 3":                    "not of the form",
		"records x 3\nrecords ./x 4":    "line 2: x has 4 records, and 3 before",
	} {
		if got, err := parseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
}

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
