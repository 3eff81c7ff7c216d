// Package measure is what the benchmarks share: a candidate and its yardstick alternate
// in one run, and medians are compared, so that a machine that is busy with
// other things disturbs both alike.
package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Row is one line of a table that compares a candidate with a yardstick.
type Row struct {
	Name      string  `json:"name"`
	NS        float64 `json:"ns"`
	Yardstick float64 `json:"yardstick_ns"`
	Ratio     float64 `json:"ratio"`
	Note      string  `json:"note,omitempty"`
}

// Alternate runs candidate and yardstick in turns and returns the row of their
// medians. The ratio is the median over the rounds of the ratio in each round, so
// that a machine whose speed changes between rounds changes it little. Each does a
// round of work and returns nanoseconds per unit.
func Alternate(name string, rounds int, candidate, yardstick func() (float64, error)) (Row, error) {
	var ours, theirs, ratios []float64
	for range rounds {
		c, err := candidate()
		if err != nil {
			return Row{}, fmt.Errorf("%s: %w", name, err)
		}
		y, err := yardstick()
		if err != nil {
			return Row{}, fmt.Errorf("yardstick of %s: %w", name, err)
		}
		ours, theirs, ratios = append(ours, c), append(theirs, y), append(ratios, c/y)
	}
	return Row{Name: name, NS: Median(ours), Yardstick: Median(theirs), Ratio: Median(ratios)}, nil
}

// Median returns the median of v, which it sorts.
func Median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// Loop returns a round of n units of work done by f.
func Loop(n int, f func(n int)) func() (float64, error) {
	return func() (float64, error) {
		start := time.Now()
		f(n)
		return float64(time.Since(start)) / float64(n), nil
	}
}

// Print writes the rows as one JSON object, or as a table by way of line.
func Print[R any](rows []R, asJSON bool, line func(R) string) error {
	if !asJSON {
		for _, r := range rows {
			fmt.Println(line(r))
		}
		return nil
	}
	return PrintJSON(struct {
		Machine Machine `json:"machine"`
		Rows    []R     `json:"rows"`
	}{ThisMachine(), rows})
}

// PrintJSON prints a result as one JSON object.
func PrintJSON(result any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(result)
}
