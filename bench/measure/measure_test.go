package measure

import (
	"errors"
	"testing"
)

func TestAlternate(t *testing.T) {
	var order string
	round := func(name string, values ...float64) func() (float64, error) {
		return func() (float64, error) {
			order += name
			v := values[0]
			values = values[1:]
			return v, nil
		}
	}
	r, err := Alternate("row", 3, round("c", 9, 2, 3), round("y", 1, 2, 100))
	if err != nil || order != "cycycy" || r.NS != 3 || r.Yardstick != 2 || r.Ratio != 1 {
		t.Fatalf("got %+v, %v in the order %s", r, err, order)
	}
}

func TestAlternateFails(t *testing.T) {
	broken := errors.New("broken")
	fails := func() (float64, error) { return 0, broken }
	works := func() (float64, error) { return 1, nil }
	if _, err := Alternate("row", 1, fails, works); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if _, err := Alternate("row", 1, works, fails); !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

func TestCoreTicks(t *testing.T) {
	for line, want := range map[string][2]int{
		"cpu1 10 1 20 400 5 2 3 4 0 0": {1, 40},
		"cpu  10 1 20 400 5 2 3 4 0 0": {-1, 0},
		"ctxt 12345":                   {-1, 0},
	} {
		if core, ticks := coreTicks(line); core != want[0] || ticks != want[1] {
			t.Errorf("%q: core %d with %d ticks, and not %v", line, core, ticks, want)
		}
	}
}
