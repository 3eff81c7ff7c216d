package stage

import (
	"strings"
	"testing"
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

func FuzzReport(f *testing.F) {
	f.Add([]byte("records parts/a b.fq 12\n\nrecords c 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := parseReport(data)
		for name, n := range records {
			if err == nil && n < 0 {
				t.Fatal(name, n)
			}
		}
	})
}
